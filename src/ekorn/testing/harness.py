"""The base of all harnesses: a pipeline that runs in the test's process, step by step.

Each call of a test (an element, a watermark, a processing time) passes through the whole pipeline before it returns,
so that the next line can look at the results. Time stands still unless the test moves it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeAlias

from ekorn.clock import ManualClock
from ekorn.config.configuration import Configuration
from ekorn.functions.output_tag import OutputTag
from ekorn.functions.state.state_descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from ekorn.functions.watermark_strategy import WatermarkStrategy
from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
from ekorn.program.streams.data_stream import DataStream
from ekorn.testing.harness_job import HarnessJob, Scale
from ekorn.testing.inspection import RegisteredTimer, keyed_state, operator_state, registered_timers
from ekorn.testing.taps import Inlet, InletSource, InletWatermarks, Outlet, OutletSink
from ekorn.types.time_bounds import MAX_TIMESTAMP
from ekorn.types.type_information import TypeInformation

Pipeline: TypeAlias = Callable[..., DataStream | None]
"""Draws the pipeline under test: takes the input streams, returns the output stream, or None if it ends in sinks."""

_PLAIN_FUNCTION = (
    "a harness treats a plain function as a pipeline and calls it with streams: to run it on records, pass a pipeline "
    "that uses it, such as `lambda stream: stream.map(function)`"
)


class Harness:
    """A pipeline under test. Use one of its subclasses, by the number and kind of inputs.

    Args:
        pipeline: Draws the pipeline, given a stream for each input. `restore` calls it again.
        input_types: Declared types of the inputs' records.
        side_outputs: Tags whose records `side_output` returns.
        parallelism: The number of subtasks of each operator, unless the pipeline sets it.
        max_parallelism: The number of key groups.
        configuration: Settings of the job, such as the state backend and global job parameters.
        processing_time: The first processing time, in milliseconds.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        input_types: Collection[TypeInformation | None],
        *,
        side_outputs: Collection[OutputTag] = (),
        parallelism: int = 1,
        max_parallelism: int | None = None,
        configuration: Configuration | None = None,
        processing_time: int = 0,
    ) -> None:
        self._pipeline = pipeline
        self._types = tuple(input_types)
        self._inlets = [Inlet() for _ in self._types]
        self._outlet = Outlet()
        self._sides = {tag.tag_id: (tag, Outlet()) for tag in side_outputs}
        self._clock = ManualClock(processing_time)
        self._configuration = configuration
        self._scale = Scale(parallelism, max_parallelism)
        self._closed = False
        self._job = self._start(None)

    def _start(self, snapshot: bytes | None) -> HarnessJob:
        for inlet in self._inlets:
            inlet.reset()
        return HarnessJob(self._draw, self._scale, self._clock, self._configuration, snapshot)

    def _draw(self, env: StreamExecutionEnvironment) -> None:
        streams = []
        for number, (inlet, type_info) in enumerate(zip(self._inlets, self._types, strict=True), start=1):
            watermarks = WatermarkStrategy.for_generator(partial(_watermarks_of, inlet))
            stream = env.from_source(InletSource(inlet), watermarks, f"input {number}", type_info)
            streams.append(stream.set_parallelism(1).uid(f"harness-input-{number}"))
        result = self._drawn_from(streams)
        if result is not None:
            _collect(result, self._outlet, "output")
        for tag, outlet in self._sides.values():
            if result is None:
                raise ValueError("a pipeline that returns no stream has no side outputs: return a stream")
            _collect(result.get_side_output(tag), outlet, f"side output {tag.tag_id}")

    def _drawn_from(self, streams: list[DataStream]) -> DataStream | None:
        try:
            result = self._pipeline(*streams)
        except (TypeError, AttributeError) as error:
            error.add_note(_PLAIN_FUNCTION)
            raise
        if result is not None and not isinstance(result, DataStream):
            raise TypeError(f"the pipeline returned {result!r}, which is not a stream; {_PLAIN_FUNCTION}")
        return result

    # ------------------------------------------------------------------------------------------------- time passes

    def set_processing_time(self, timestamp: int) -> None:
        """Move processing time forward to a time in milliseconds, and fire the timers that it passes.

        Flink: a timer at t fires when the clock is past t, so at t + 1.
        """
        now_ms = self._clock.now_ms()
        if timestamp < now_ms:
            raise ValueError(f"processing time is already {now_ms} and cannot go back to {timestamp}")
        self._clock.advance(timestamp - now_ms)
        self._run()

    def advance_processing_time(self, millis: int) -> None:
        """Move processing time forward by a number of milliseconds."""
        self.set_processing_time(self._clock.now_ms() + millis)

    def processing_time(self) -> int:
        """Return the processing time in milliseconds."""
        return self._clock.now_ms()

    def end_input(self) -> None:
        """End all inputs: event time advances to its maximum, event-time timers fire, functions finish."""
        for inlet in self._inlets:
            inlet.ended = True
        self._run()

    def run_until(self, condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
        """Run the pipeline until a condition holds that takes real time, such as an answer to an asynchronous call.

        Raises:
            TimeoutError: The condition does not hold in time.
        """
        stop = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > stop:
                raise TimeoutError(f"the condition of run_until did not become true within {timeout_s} s")
            self._run()

    def _push(self, number: int, value: Any, timestamp: int | None) -> None:
        self._open_inlet(number).records.append((value, timestamp))
        self._run()

    def _push_batch(self, number: int, values: Iterable[Any], timestamps: Sequence[int] | int | None) -> None:
        records = list(values)
        times = list(timestamps) if isinstance(timestamps, Sequence) else [timestamps] * len(records)
        self._open_inlet(number).records.extend(zip(records, times, strict=True))
        self._run()

    def _advance(self, timestamp: int, *numbers: int) -> None:
        if timestamp > MAX_TIMESTAMP:
            raise ValueError(f"a watermark is at most {MAX_TIMESTAMP}, got {timestamp}")
        for number in numbers:
            self._open_inlet(number).watermark_ms = timestamp
        self._run()

    def _mark_idle(self, number: int, idle: bool) -> None:
        self._open_inlet(number).idle = idle
        self._run()

    def _open_inlet(self, number: int) -> Inlet:
        self._living()
        if self._inlets[number].ended:
            raise RuntimeError("the input has ended: no element or watermark can follow end_input()")
        return self._inlets[number]

    def _run(self) -> None:
        self._living().run_epoch()

    def _living(self) -> HarnessJob:
        if self._closed:
            raise RuntimeError("the harness is closed")
        if self._job.failed:
            raise RuntimeError("the function has failed; restore() a snapshot to go on, or close()")
        return self._job

    # --------------------------------------------------------------------------------------- what can be looked at

    def output(self) -> list[Any]:
        """Return all records of the output so far, in order; with several subtasks, each subtask's records in order."""
        return [value for value, _ in self._outlet.records]

    def output_with_timestamps(self) -> list[tuple[Any, int | None]]:
        """Return the records of `output`, each with its event timestamp."""
        return list(self._outlet.records)

    def take_output(self) -> list[Any]:
        """Return the records of `output`, and clear it."""
        values = self.output()
        self._outlet.records.clear()
        return values

    def side_output(self, tag: OutputTag) -> list[Any]:
        """Return all records of a side output so far."""
        return [value for value, _ in self.side_output_with_timestamps(tag)]

    def side_output_with_timestamps(self, tag: OutputTag) -> list[tuple[Any, int | None]]:
        """Return the records of `side_output`, each with its event timestamp."""
        if tag.tag_id not in self._sides:
            known = ", ".join(map(repr, self._sides)) or "none"
            raise LookupError(
                f"side output {tag.tag_id!r} is not collected: add it to side_outputs=, which is now {known}"
            )
        return list(self._sides[tag.tag_id][1].records)

    def state(self, key: Any, descriptor: StateDescriptor, *, operator: str | None = None) -> Any:
        """Return the keyed state of a key: a value, a list or a dict; None or an empty one if there is no state.

        Args:
            key: A key as the key selector returns it.
            descriptor: The descriptor with which the function declares the state.
            operator: The operator's name or uid, if several operators have a state of this name.
        """
        return keyed_state(list(self._living().operators()), key, descriptor, operator)

    def operator_state(self, descriptor: ListStateDescriptor, *, subtask: int = 0, operator: str | None = None) -> Any:
        """Return the elements of a list in operator state, in one subtask."""
        return operator_state(list(self._living().operators()), subtask, descriptor, operator)

    def broadcast_state(self, descriptor: MapStateDescriptor, *, subtask: int = 0, operator: str | None = None) -> Any:
        """Return a broadcast state as a dict, in one subtask."""
        return operator_state(list(self._living().operators()), subtask, descriptor, operator)

    def timers(self, key: Any, *, operator: str | None = None) -> list[RegisteredTimer]:
        """Return the timers of a key that process functions registered and that have not fired, by time."""
        return registered_timers(list(self._living().operators()), key, operator)

    # ---------------------------------------------------------------------------------------------- checkpoints

    def snapshot(self) -> bytes:
        """Take a checkpoint and complete it: functions are notified, sinks commit. Return all state and timers."""
        return self._living().snapshot()

    def restore(self, snapshot: bytes, parallelism: int | None = None) -> None:
        """Restore a snapshot, as after a crash: with new function objects, the saved state, and no watermark yet.

        Records that the output has already stay there. With another parallelism, the state is redistributed.
        """
        if self._closed:
            raise RuntimeError("the harness is closed")
        if parallelism is not None:
            self._scale = Scale(parallelism, self._scale.max_parallelism)
        self._job.discard()
        self._job = self._start(snapshot)

    # ------------------------------------------------------------------------------------------------- the end

    def close(self) -> None:
        """Close the functions. A second call does nothing."""
        if not self._closed:
            self._closed = True
            self._job.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        elif not self._closed:
            self._closed = True
            self._job.discard()  # the test's own error matters, not errors of `close`


def _watermarks_of(inlet: Inlet, context: Any) -> InletWatermarks:
    return InletWatermarks(inlet)


def _collect(stream: DataStream, outlet: Outlet, name: str) -> None:
    # Not chained to the pipeline: a record that crosses an exchange must fit its declared type.
    sink = stream.rebalance().add_sink(OutletSink(outlet)).name(name)
    sink.uid(f"harness-{name}").set_parallelism(1)
