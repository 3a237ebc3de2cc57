"""The tight way for sliding windows whose slices can be combined: a record is added once, not to each of its windows.

A window fires by putting the slices that it consists of together, and gives exactly what it would give if its records
had been added to it one by one. Some windows are kept one by one all the same, in panes, as `aligned_windows.py` keeps
all of its: those up to `_cut`, the last that had fired when the state was restored, since they must not see again what
they gave before; and, once a record has come that cannot be combined with others, all.
"""

from __future__ import annotations

from typing import Any

from tamias.codegen.code_builder import CodeBuilder
from tamias.graph.job_graph import Operator
from tamias.graph.specs import WindowSpec
from tamias.operators.environment import SubtaskEnvironment
from tamias.operators.windows.aligned_windows import AlignedWindowOperator
from tamias.operators.windows.combining import SliceContents
from tamias.operators.windows.contents import MISSING
from tamias.operators.windows.layout_translation import to_panes
from tamias.operators.windows.layouts import PANES, SLICES, check_layout
from tamias.operators.windows.panes import Pane, other_size
from tamias.operators.windows.progress import Progress, SavedProgress, progress_of
from tamias.operators.windows.slice_arithmetic import Slicing
from tamias.operators.windows.slice_table import Slice, SliceTable
from tamias.state.keyed_backend import RestoredTables
from tamias.types.by_value import own
from tamias.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP


class SlicedWindowOperator(AlignedWindowOperator):
    """Sliding windows, by event time or by the clock, in slices."""

    def __init__(
        self, operator: Operator, spec: WindowSpec, environment: SubtaskEnvironment, contents: SliceContents
    ) -> None:
        super().__init__(operator, spec, environment)
        self._slicing = Slicing(self._size, self._slide, self._offset)
        self._in_slices = contents
        self._slice_table = SliceTable(SLICES, self._slicing, contents, tracked=self._heap.tracked)
        self._plain: dict[int, Slice] = {}  # slices of which no window has fired: a record need only be added
        self._cut = MIN_TIMESTAMP  # windows that end up to here are in panes
        self._gone = MIN_TIMESTAMP  # of those, the ones that end after this are in slices until they get a record

    def translate(self, tables: RestoredTables) -> None:
        to_panes(tables, self._spec)

    def _adopt_state(self) -> None:
        check_layout(self._heap, SLICES, PANES)
        self._heap.adopt(self._table)
        self._heap.adopt(self._slice_table)
        self._progress = SavedProgress(self.states)
        self._resume(self._progress.of(self.key_groups()))

    def _resume(self, saved: list[Progress]) -> None:
        """Go on from a checkpoint: up to the last window that had fired for any key, windows are in panes."""
        table = self._slice_table
        if table.data and any(p.size_ms != self._size for p in saved):
            raise other_size(saved[0].size_ms, self._size)
        self._cut = max([p.fired_ms for p in saved] + list(self._table.panes), default=MIN_TIMESTAMP)
        self._gone = max((p.gone_ms for p in saved), default=self._cut)
        if len({(p.gone_ms, p.fired_ms) for p in saved}) > 1:
            self._even_out(saved)
        for start in sorted(table.slices):
            if self._slicing.windows_of(start)[0] <= self._gone:
                table.forget(start)
        for end in table.windows():
            if end > self._gone:
                self._ends.enter(end)

    def _even_out(self, saved: list[Progress]) -> None:
        """Keys had come to different times: what some of them have in windows up to `_cut` goes into panes."""
        groups = self.environment.vertex.max_parallelism
        progress = {key: progress_of(key, saved, groups) for key in self._slice_table.data}
        for end in self._slice_table.windows():
            if end <= self._cut:
                for key in self._slice_table.keys_of(end):
                    had = progress[key]
                    if had.gone_ms < end and (had.fired_ms < end or end <= self._gone):
                        self._move(end, key, quiet=end <= had.fired_ms)

    def before_snapshot(self, checkpoint_id: int, now_ms: int) -> None:
        super().before_snapshot(checkpoint_id, now_ms)
        gone, fired = self._gone, self._cut
        if self._event_time and fired < MAX_TIMESTAMP:
            passed = min(self._clocks.watermark_ms + 1, MAX_TIMESTAMP)
            gone, fired = max(gone, passed - self._lateness), max(fired, passed)
        elif fired == MAX_TIMESTAMP:  # a restored job tries slices again
            gone = fired = max(self._table.panes, default=MIN_TIMESTAMP)
        self._progress.save(Progress(*self.key_groups(), self._size, gone, fired))

    # ------------------------------------------------------------------------------------------------ records

    def _generate_record(self, code: CodeBuilder, key: str, value: str, at: str, time: str) -> None:  # hot
        start, part = self._generate_slice_start(code, at), code.fresh("p")
        code.line(f"{part} = {code.bind(self._plain.get, 'slice')}({start})")
        with code.block(f"if {part} is None:"):
            code.line(f"{part} = {code.bind(self._plain_slice, 'plain_slice')}({start})")
        aside, fits = f"{part} is None", self._in_slices.fits
        if fits is not None:
            aside += f" or not {code.bind(fits, 'fits')}({value})"
        with code.block(f"if {aside}:"):
            code.line(f"{code.bind(self._add_aside, 'add_aside')}({key}, {value}, {at}, {time})")
        with code.block("else:"):
            self._generate_into_slice(code, part, key, value, start)
            if self._contents.listed:
                with code.block(f"if not {part}.changeable:"):
                    code.line(f"{part}.changeable = {code.bind(own, 'own')}({value}) is not {value}")
            if self._heap.tracked:
                code.line(f"{part}.changed.add({key})")

    def _generate_into_slice(self, code: CodeBuilder, part: str, key: str, value: str, start: str) -> None:
        """Generate the statements that add a record to a slice, which in most cases is its key's last or a new one."""
        strip, last, table, contents = code.fresh("l"), code.fresh("x"), self._slice_table, self._in_slices
        number = f"{code.bind(table.next_number, 'number')}()"
        with code.looking_up(key):
            code.line(f"{strip} = {code.bind(table.data.get, 'strip')}({key})")
        code.line(f"{last} = {MIN_TIMESTAMP} if {strip} is None else {strip}[-{contents.step}]")
        with code.block(f"if {last} == {start}:"):
            contents.generate_more(code, strip, number, value)
        with code.block(f"elif {last} < {start}:"):
            with code.block(f"if {strip} is None:"):
                code.line(f"{strip} = {code.bind(table.data, 'strips')}[{key}] = []")
            code.line(f"{part}.keys.append({key})")
            contents.generate_first(code, strip, f"{part}.start", number, value)
        with code.block("else:"):
            code.line(f"{code.bind(table.add, 'add')}({part}, {key}, {value})")

    def _plain_slice(self, start_ms: int) -> Slice | None:
        """The slice, if none of its windows has fired, and all will from slices."""
        ends = self._slicing.windows_of(start_ms)
        if ends[-1] <= self._cut or self._has_fired(ends[-1]):
            return None
        part = self._plain[start_ms] = self._slice(start_ms, ends)
        return part

    def _slice(self, start_ms: int, ends: list[int]) -> Slice:
        part = self._slice_table.slices.get(start_ms)
        if part is None:
            part = self._slice_table.open(start_ms)
            for end in ends:
                if end > self._cut:
                    self._ends.enter(end, fired=self._has_fired(end))
        return part

    def _add_aside(self, key: Any, value: Any, at_ms: int, time_ms: int) -> None:
        """Add a record of which more must be known: late, after a restore, or not to be combined with others."""
        start = self._slicing.start_of(at_ms)
        ends = [end for end in self._slicing.windows_of(start) if not self._is_over(end)]
        if not ends:
            self._missed(value, time_ms)
            return
        fits = self._in_slices.fits
        if self._cut < MAX_TIMESTAMP and fits is not None and not fits(value):
            self._leave_slices()
        for end in ends:
            if self._gone < end <= self._cut:
                self._move(end, key, quiet=False)  # it had fired before the restore; from now on a pane keeps it
        if ends[0] > self._cut:
            self._slice_table.add(self._slice(start, ends), key, value)
        if ends[-1] > self._cut and not self._lateness:
            return
        for end in ends:
            if end <= self._cut:
                self._add_to_pane(end, key, value, time_ms)
            elif self._has_fired(end):
                self._fire_again(end, key, time_ms)

    # ------------------------------------------------------------------------------------- windows one by one

    def _add_to_pane(self, end_ms: int, key: Any, value: Any, time_ms: int) -> None:
        contents, pane = self._contents, self._pane(end_ms)
        kept, mine = pane.get(key, MISSING), own(value) if self._contents.retains else value
        pane[key] = contents.first(mine) if kept is MISSING else contents.more(kept, mine)
        self._table.mark_in(pane, key)
        if pane.fired or pane.quiet:
            self._touched(pane, key, time_ms)

    def _pane(self, end_ms: int) -> Pane:
        pane = self._table.panes.get(end_ms)
        return self._table.open(end_ms, fired=self._has_fired(end_ms)) if pane is None else pane

    def _move(self, end_ms: int, key: Any, *, quiet: bool) -> None:
        """Let a pane have what slices hold of a key's window, unless it has; a quiet one does not fire with it."""
        kept = self._slice_table.contents_of(key, end_ms)
        if kept is MISSING:
            return
        pane = self._pane(end_ms)
        if key not in pane:
            pane[key] = kept
            self._table.mark_in(pane, key)
            if quiet:
                pane.quiet.add(key)

    def _leave_slices(self) -> None:
        """A record has come that cannot be combined: from now on every window is in a pane."""
        table = self._slice_table
        for end in table.windows():
            if end > self._gone and not self._is_over(end):
                for key in table.keys_of(end):
                    self._move(end, key, quiet=end <= self._cut)
        for start in sorted(table.slices):
            table.forget(start)
        self._plain.clear()
        self._cut = self._gone = MAX_TIMESTAMP

    # --------------------------------------------------------------------------------------------------- time

    def on_clock(self, now_ms: int) -> None:
        super().on_clock(now_ms)
        if not self._event_time and now_ms > self._cut:
            # If the clock is set back, windows that have fired open anew, without what they had.
            self._cut = self._gone = now_ms
            self._plain.clear()

    def _pass(self, end_ms: int, *, fires: bool, over: bool) -> None:
        self._plain.clear()
        if end_ms > self._cut:
            self._pass_in_slices(end_ms, fires=fires, over=over)
        else:
            pane = self._table.panes.get(end_ms, ())
            if over and end_ms > self._gone and self._clears:
                rest = [key for key in self._slice_table.keys_of(end_ms) if key not in pane]
                self._clear(rest, self._window(end_ms))
            if pane:
                super()._pass(end_ms, fires=fires, over=over)
        if over:
            for start in self._slicing.last_in(end_ms):
                self._slice_table.forget(start)

    def _pass_in_slices(self, end_ms: int, *, fires: bool, over: bool) -> None:  # hot
        window, give = self._window(end_ms), self._give
        if fires:
            for key, kept in self._slice_table.fire(end_ms):
                give(key, window, kept, end_ms - 1, stays=False)
        if over and self._clears:
            self._clear(self._slice_table.keys_of(end_ms), window)

    def _fire_again(self, end_ms: int, key: Any, time_ms: int) -> None:
        """A late record has come for a window that has fired."""
        self._give(key, self._window(end_ms), self._slice_table.contents_of(key, end_ms), time_ms, stays=False)
