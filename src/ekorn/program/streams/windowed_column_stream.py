"""`WindowedColumnStream` and `AllWindowedColumnStream`: the windows of columns, with keys and without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ekorn.errors import InvalidProgramError
from ekorn.functions.windows.assigner_contract import WindowAssigner
from ekorn.functions.windows.count_assigners import CountWindows
from ekorn.functions.windows.named_aggregates import AllWindowRows, WindowRows
from ekorn.functions.windows.window_arithmetic import CountGrid, SessionGap, WindowGrid
from ekorn.graph.column_specs import WindowAggregateSpec
from ekorn.program.streams.column_types import AnyAggregate, adapted, row_type_from, window_fields
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.windowed_stream import ALL_ROWS, AllWindowedStream, Windowed, WindowedStream
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.data_types import RowType

if TYPE_CHECKING:
    from ekorn.program.streams.column_stream import ColumnStream
    from ekorn.program.streams.keyed_column_stream import KeyedColumnStream

__all__ = ["AllWindowedColumnStream", "WindowedColumnStream"]


class _OnColumns(Windowed):
    """Windows of columns: `aggregate` with aggregates by name is computed on columns. All else takes rows.

    Sessions whose gap depends on the row, and windows with an evictor or with another trigger than the default one,
    take rows as well.
    """

    def _arithmetic(self) -> WindowGrid | SessionGap | CountGrid | None:
        """Return where windows start and end, if they fire at their end and have no other rule."""
        assigner = self._assigner
        if self._evictor is not None:
            return None
        if isinstance(assigner, CountWindows):
            return assigner.counts() if assigner.is_own_trigger(self._trigger) else None
        if not self._trigger.fires_only_at_window_end(event_time=assigner.is_event_time()):
            return None
        found = assigner.arithmetic()
        return None if isinstance(found, SessionGap) and found.fixed_ms is None else found

    def _window_spec(
        self,
        arithmetic: WindowGrid | SessionGap | CountGrid,
        names: tuple[str, ...],
        row_type: RowType,
        aggregates: Mapping[str, AnyAggregate],
    ) -> WindowAggregateSpec:
        self._check_late_tag(row_type)
        named = adapted(row_type, aggregates)
        rows = window_fields(row_type, names, named, bounds=self._has_bounds)
        kind = WindowRows if names else AllWindowRows
        windows = self._named_spec(named, kind(rows.field_names(), bounds=self._has_bounds))
        return WindowAggregateSpec(windows, arithmetic, tuple(named.items()), names, row_type, rows)

    def _check_late_tag(self, row_type: RowType) -> None:
        """Refuse a side output of records that are not rows of the input."""
        declared = None if self._late_tag is None else self._late_tag.type_info
        if declared is None:
            return
        if not isinstance(declared, RowTypeInfo) or row_type_from(declared, "side_output_late_data") != row_type:
            raise InvalidProgramError(
                f"side_output_late_data(): late rows have the columns {row_type.field_names()} of the input, and "
                f"{self._late_tag!r} declares another type; leave the type out, or declare that of the input"
            )


class WindowedColumnStream(_OnColumns, WindowedStream):
    """The windows of a stream of columns with keys."""

    def __init__(self, keyed_stream: KeyedColumnStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(keyed_stream, window_assigner)
        self._keyed_columns = keyed_stream

    def _aggregates_by_name(self, aggregates: Mapping[str, AnyAggregate]) -> DataStream:
        arithmetic = self._arithmetic()
        if arithmetic is None:
            return super()._aggregates_by_name(aggregates)
        names, row_type = self._keyed_columns._keys_by_name("aggregate")
        spec = self._window_spec(arithmetic, names, row_type, aggregates)
        return self._keyed_columns._columns_per_key(self._name(spec.windows.function), spec, spec.row_type)


class AllWindowedColumnStream(_OnColumns, AllWindowedStream):
    """The windows of a stream of columns without keys."""

    def __init__(self, stream: ColumnStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(stream, window_assigner)
        self._columns = stream

    def _aggregates_by_name(self, aggregates: Mapping[str, AnyAggregate]) -> DataStream:
        arithmetic = self._arithmetic()
        if arithmetic is None:
            return super()._aggregates_by_name(aggregates)
        spec = self._window_spec(arithmetic, (), self._columns.row_type, aggregates)
        return self._columns._columns_of_all(self._name(spec.windows.function), spec, spec.row_type, ALL_ROWS)
