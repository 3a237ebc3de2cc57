"""Runs jobs by a script of epochs, checkpoints and crashes: the same in every run, and without waiting.

    script = Script(checkpoints=[True], crashes=[Crash("after-epoch", 3)])
    records = run_scripted(stream, script).records

A `ScriptedSource` defines how much each epoch reads. A `Script` defines which epochs carry a checkpoint, and what fails
when. The job runs on a clock of its own, so delays cost no time.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Literal

from ekorn.clock import Clock, ManualClock
from ekorn.config.settings.job_settings import JobSettings
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.loop.job_loop import JobLoop
from ekorn.engine.protocol import AckT, EpochResult, Failure, OrderT
from ekorn.errors import SlotLostError
from ekorn.functions.results.job_status import JobStatus
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.operators.asynchronous.async_wait import AsyncWaitOperator
from ekorn.operators.epoch import EpochAck, EpochOrder, SubtaskOrder
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.operators.sources.source_function import SourceFunctionOperator
from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
from ekorn.program.streams.data_stream import DataStream
from ekorn.slot.host import SlotHost
from ekorn.slot_protocol.deployment import Deployment
from ekorn.slot_protocol.slot_events import OperatorHint, SlotEvent, SnapshotNotWritten, SnapshotWritten
from ekorn.subtask.capture import CapturedSubtask
from ekorn.subtask.outbox import Emitted
from ekorn.subtask.wire.frames import ReceivedBlob
from ekorn.testing.continuous_local_engine import ContinuousLocalEngine, PollLimits
from ekorn.testing.drawn_job import drawn_job
from ekorn.testing.local_engine import InProcessEngine, LocalEngine

CHECKPOINT_INTERVAL_MS = 10


class ScriptedSource(Source):
    """A bounded source that reads a number of records in each epoch.

    Args:
        splits: The records, in one list for each split.
        runs: The number of records that each epoch reads of each split, repeated in a cycle; None reads all at once.
    """

    def __init__(self, splits: Sequence[Sequence[Any]], runs: Sequence[int] | None = None) -> None:
        self._splits = [list(s) for s in splits]
        self._runs = None if runs is None else list(runs)

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        return [Split(f"split-{n}", n) for n in range(len(self._splits))]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        return _ScriptedReader(self._splits[split.what], self._runs, position or 0)


class _ScriptedReader(SplitReader):
    def __init__(self, records: list[Any], runs: list[int] | None, position: int) -> None:
        self._records = records
        self._at = position
        self._runs = itertools.repeat(len(records)) if runs is None else itertools.cycle(runs)
        self._left = next(self._runs)  # records left in the run that is being read

    def read(self, max_records: int) -> Batch:
        if self._left == 0:
            self._left = next(self._runs)
            return Batch([])
        values = self._records[self._at : self._at + min(self._left, max_records)]
        self._at += len(values)
        self._left -= len(values)
        return Batch(values)

    def position(self) -> Any:
        return self._at

    @property
    def finished(self) -> bool:
        return self._at >= len(self._records)


Point = Literal[
    "before-deploy",
    "after-deploy",
    "before-epoch",
    "in-epoch",
    "after-epoch",
    "before-notify",
    "in-notify",
    "after-notify",
]


@dataclass(frozen=True)
class Crash:
    """The job fails when it passes a point for the n-th time, counted from 1."""

    point: Point
    count: int = 1


class DriverDied(BaseException):
    """The driver died: raised in place of the end of its process."""


@dataclass(frozen=True)
class Script:
    """The events of a job while it runs.

    Args:
        checkpoints: Whether each epoch carries a checkpoint, repeated in a cycle.
        crashes: The points at which the job fails.
        failed_snapshots: Numbers of the snapshots (of all, from 1) that are reported as not written.
        late_snapshots: Numbers of the snapshots (of all, from 1) that are reported a number of epochs later.
        late_until_wait: Late snapshots are reported as soon as the job waits, if that comes first.
        backlog_epochs: In how many epochs, from the first, the sources report a backlog.
        kill: A crash drops the subtasks without closing them, as when a process is killed. If false, they are
            closed as after an exception.
        kills_one_slot: A crash inside a slot drops the subtasks of that slot alone.
        driver_dies: A crash ends the driver too: `run_scripted` raises `DriverDied`.
        turns: The seed of the order in which subtasks take turns, for a job that runs continuously; None: in epochs.
        deeds: Functions that are called with the job's handle after the n-th epoch of all (from 1).
        passing: A function that is called whenever the job passes a point, before it fails there.
    """

    checkpoints: Sequence[bool] = (True,)
    crashes: Sequence[Crash] = ()
    failed_snapshots: Collection[int] = ()
    late_snapshots: Mapping[int, int] = field(default_factory=dict)
    late_until_wait: bool = False
    backlog_epochs: int = 0
    kill: bool = True
    kills_one_slot: bool = False
    driver_dies: bool = False
    turns: int | None = None
    deeds: Mapping[int, Callable[[JobHandle], object]] = field(default_factory=dict)
    passing: Callable[[Point, JobHandle], object] = lambda point, handle: None


class Scripted(InProcessEngine):
    """The part of a scripted engine that does not depend on the mode of the job."""

    def __init__(self, graph: JobGraph, clock: ManualClock, script: Script) -> None:
        super().__init__(graph, clock)
        self._clock = clock
        self._script = script
        self._checkpoints = itertools.cycle(script.checkpoints)
        self.times_passed: Counter[str] = Counter()  # for each point; "snapshot" counts snapshots written
        self._dead = False
        self._late: list[tuple[int, SlotEvent]] = []  # events held back, each with the epoch in which it is reported
        self._reported: Counter[int] = Counter()  # events, by checkpoint
        self.handle: JobHandle | None = None
        self.epochs: list[SubtaskOrder] = []
        self.started_ms: list[int] = []  # the start of each epoch
        self.restored_ids: list[int | None] = []  # the checkpoint that each attempt restored
        self.bytes_written: Counter[int] = Counter()  # for each checkpoint
        self.advance_clock()

    def _make_host(self, slot: int, clock: Clock, report: Callable[[SlotEvent], None]) -> SlotHost:
        return _ScriptedHost(slot, clock, report, self.passes)

    def _kill_slots(self) -> None:
        for host in self.hosts:
            assert isinstance(host, _ScriptedHost), "_make_host makes no others"
            host.die()

    def advance_clock(self) -> None:
        """Make a checkpoint due, if the script has one for the next epoch."""
        if next(self._checkpoints):
            self._clock.advance(CHECKPOINT_INTERVAL_MS)

    def passes(self, point: Point, host: _ScriptedHost | None = None) -> bool:
        """Count that the job passes a point, in a slot or outside; return whether the script has it fail there."""
        self.times_passed[point] += 1
        if self.handle is not None:
            self._script.passing(point, self.handle)
        if Crash(point, self.times_passed[point]) not in self._script.crashes:
            return False
        if host is not None and self._script.kills_one_slot:
            host.die()
        elif self._script.kill or self._script.driver_dies:
            self._kill_slots()
        if self._script.driver_dies:
            self._dead = True
            raise DriverDied
        return True

    def deploy(self, deployment: Deployment) -> Failure | None:
        self.restored_ids.append(deployment.restore.checkpoint_id if deployment.restore is not None else None)
        if self.passes("before-deploy"):
            return _gone("before deploy")
        failure = super().deploy(deployment)
        if failure is None and self.passes("after-deploy"):
            return _gone("after deploy")
        return failure

    def _run_scripted(self, order: OrderT, run: Callable[[OrderT], EpochResult[AckT]]) -> EpochResult[AckT]:
        """Run an epoch, with what the script has for it."""
        self.epochs.append(order)
        self.started_ms.append(self._clock.now_ms())
        self._held += [event for due, event in self._late if due <= len(self.epochs)]
        self._late = [(due, event) for due, event in self._late if due > len(self.epochs)]
        if self.passes("before-epoch"):
            return EpochResult(failure=_gone("before an epoch"))
        result = run(order)
        if len(self.epochs) <= self._script.backlog_epochs:
            for ack in result.acks:
                ack.backlog = True
        if result.failure is None:
            self._await_snapshots(order)
            if self.passes("after-epoch"):
                return EpochResult(failure=_gone("after an epoch"))
        self.advance_clock()
        if self.handle is not None and len(self.epochs) in self._script.deeds:
            self._script.deeds[len(self.epochs)](self.handle)
        return result

    def _await_snapshots(self, order: SubtaskOrder) -> None:
        """Wait until all snapshots are written, so that the next step does not depend on threads."""
        if order.checkpoint_id is None:
            return
        everyone = {SubtaskId(v.id, i) for v in self._graph.vertices for i in range(v.parallelism)}
        while self._reported[order.checkpoint_id] < len(everyone - order.settled):
            try:
                self._take(self._events.get(timeout=30))
            except queue.Empty:
                raise AssertionError("a snapshot was neither written nor reported as failed") from None

    def _take(self, event: SlotEvent | None) -> None:
        """Let the script decide about an event: reported as it is, as a failure, or later."""
        if event is None:
            return
        if isinstance(event, OperatorHint):
            self._held.append(event)
            return
        self._reported[event.checkpoint_id] += 1
        if isinstance(event, SnapshotWritten):
            self.bytes_written[event.checkpoint_id] += event.snapshot.bytes_written
            self.times_passed["snapshot"] += 1
            if self.times_passed["snapshot"] in self._script.failed_snapshots:
                subtask = SubtaskId(event.snapshot.vertex, event.snapshot.subtask)
                event = SnapshotNotWritten(event.checkpoint_id, event.attempt, subtask, "lost by the script")
        later = self._script.late_snapshots.get(self.times_passed["snapshot"], 0)
        if later:
            self._late.append((len(self.epochs) + later, event))
        else:
            self._held.append(event)

    def _take_reported(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._take(self._events.get_nowait())

    def events(self) -> list[SlotEvent]:
        self._take_reported()
        found, self._held = self._held, []
        return found

    def wait(self, timeout_s: float) -> None:
        """Advance the clock instead of waiting."""
        if self._script.late_until_wait:
            self._held += [event for _, event in self._late]
            self._late.clear()
        self._take_reported()
        self._clock.advance(1)

    def notify_completed(self, checkpoint_id: int) -> Failure | None:
        if self.passes("before-notify"):
            return _gone("before a notification")
        failure = super().notify_completed(checkpoint_id)
        if failure is None and self.passes("after-notify"):
            return _gone("after a notification")
        return failure

    def shutdown(self) -> None:
        if self._dead:
            self._kill_slots()
        super().shutdown()


class ScriptedEngine(Scripted, LocalEngine):
    """The local engine, driven by a script."""

    def run_epoch(self, order: EpochOrder) -> EpochResult[EpochAck]:
        run = super().run_epoch
        # The script limits what a source reads, not the order.
        return self._run_scripted(order, lambda order: run(replace(order, max_records=1 << 40, max_source_ms=1 << 40)))


class ContinuousScriptedEngine(Scripted, ContinuousLocalEngine):
    """The local engine for jobs that run continuously, driven by a script."""

    poll_limits = PollLimits(max_records=1 << 40, max_ms=1 << 40, max_bytes=64 << 20)  # the script limits a source

    def __init__(self, graph: JobGraph, clock: ManualClock, script: Script) -> None:
        super().__init__(graph, clock, script)
        self._chance = Random(script.turns)

    @property
    def mark_interval_ms(self) -> int:
        return 1  # one wait of a script

    def run_epoch(self, order: MarkOrder) -> EpochResult[MarkAck]:
        return self._run_scripted(order, super().run_epoch)

    def _ask_for_order(self) -> MarkOrder | None:
        self._clock.advance(CHECKPOINT_INTERVAL_MS)
        return super()._ask_for_order()


class _ScriptedHost(SlotHost):
    """A slot that fails in the middle of an epoch or of a notification."""

    def __init__(
        self,
        slot: int,
        clock: Clock,
        report: Callable[[SlotEvent], None],
        passes: Callable[[Point, _ScriptedHost], bool],
    ) -> None:
        super().__init__(slot, clock, report)
        self._passes = passes

    def run(
        self,
        subtask_id: SubtaskId,
        attempt: int,
        order: EpochOrder,
        blobs: Iterable[ReceivedBlob],
        send: Callable[[Emitted], None] | None = None,
    ) -> Iterator[Emitted | EpochAck]:
        for item in super().run(subtask_id, attempt, order, blobs, send):
            if isinstance(item, EpochAck) and self._passes("in-epoch", self):
                raise SlotLostError(self.slot, "crashed in an epoch")
            yield item

    def capture(self, subtask_id: SubtaskId, order: SubtaskOrder) -> CapturedSubtask | None:
        captured = super().capture(subtask_id, order)
        if self._passes("in-epoch", self):
            raise SlotLostError(self.slot, "crashed at a mark")
        return captured

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        super().checkpoint_completed(checkpoint_id)
        if self._passes("in-notify", self):
            raise SlotLostError(self.slot, "crashed in a notification")

    def die(self) -> None:
        """Lose all subtasks without closing them; only the threads that ekorn started for them end."""
        for subtask in self.subtasks.values():
            for operator in subtask.operators:
                if isinstance(operator, SourceFunctionOperator):
                    operator.close()
                elif isinstance(operator, AsyncWaitOperator):
                    operator.stop()
        self.drop_subtasks()


def _gone(when: str) -> Failure:
    return Failure(SlotLostError(0, f"crashed {when}"), 0)


@dataclass(frozen=True)
class Run:
    """A scripted job that has run."""

    handle: JobHandle
    engine: Scripted
    settings: JobSettings
    records: list[Any] = field(default_factory=list)

    @property
    def status(self) -> JobStatus:
        """The status with which the job ended."""
        return self.handle.status()

    @property
    def epochs(self) -> list[SubtaskOrder]:
        """The orders of all epochs of all attempts."""
        return self.engine.epochs


def run_scripted(
    program: DataStream | StreamExecutionEnvironment, script: Script | None = None, **settings: Any
) -> Run:
    """Run a program to its end, and collect the records if it is a stream.

    Args:
        program: A stream, or an environment whose operators end in sinks.
        script: What happens to the job; by default every epoch carries a checkpoint, if the program takes any.
        settings: Fields of `JobSettings` to replace, such as `restore_path` and `job_id`.

    Raises:
        JobExecutionError: The job failed.
        DriverDied: The script lets the driver die.
    """
    run = start_scripted(program, script, **settings)
    run.handle.wait(0)
    return replace(run, records=list(run.handle.results.records()))


def start_scripted(
    program: DataStream | StreamExecutionEnvironment, script: Script | None = None, **settings: Any
) -> Run:
    """Run a program to its end without raising its failure; the handle has the result."""
    graph, chosen = drawn_job(program)
    chosen = replace(chosen, **settings)
    clock = ManualClock(1_000_000)
    handle = JobHandle(chosen.job_id, chosen.job_name)
    engines: list[ScriptedEngine | ContinuousScriptedEngine] = []

    def make_engine(graph: JobGraph) -> ScriptedEngine | ContinuousScriptedEngine:
        kind = ScriptedEngine if script is None or script.turns is None else ContinuousScriptedEngine
        engines.append(kind(graph, clock, script or Script()))
        engines[0].handle = handle
        return engines[0]

    loop = JobLoop(graph, chosen, handle, make_engine, clock=clock, chance=Random(0))
    loop.run()
    return Run(handle, engines[0], chosen)


def split_evenly(records: Iterable[Any], count: int) -> list[list[Any]]:
    """Distribute records over splits in turn."""
    dealt = list(records)
    return [dealt[n::count] for n in range(count)]
