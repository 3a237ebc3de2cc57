"""What all harnesses have in common: a pipeline that runs in the test's process, step by step.

Each call of a test (an element, a watermark, a moment in processing time) goes through the whole pipeline before the
call returns, so that its results can be looked at in the next line. Time stands still unless the test moves it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeAlias

from tamias.clock import ManualClock
from tamias.config.configuration import Configuration
from tamias.functions.output_tag import OutputTag
from tamias.functions.state_descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from tamias.functions.watermark_strategy import WatermarkStrategy
from tamias.program.data_stream import DataStream
from tamias.program.stream_execution_environment import StreamExecutionEnvironment
from tamias.testing.harness_job import HarnessJob, Scale
from tamias.testing.inspection import RegisteredTimer, keyed_state, operator_state, registered_timers
from tamias.testing.taps import Inlet, InletSource, InletWatermarks, Outlet, OutletSink
from tamias.types.time_bounds import MAX_TIMESTAMP
from tamias.types.type_information import TypeInformation

Pipeline: TypeAlias = Callable[..., DataStream | None]
"""Draws what is under test: streams in, the stream whose records are the output, or None if it ends in sinks."""


class Harness:
    """A pipeline under test. Use one of the classes below it, by the number and kind of inputs.

    Args:
        pipeline: Draws the pipeline, given a stream for each input. It is called again by `restore`.
        input_types: Declared types of the inputs' records.
        side_outputs: Tags whose records are to be kept, for `side_output`.
        parallelism: How many subtasks each operator has, unless the pipeline says otherwise.
        max_parallelism: The number of key groups.
        configuration: Settings of the job, such as the state backend and global job parameters.
        processing_time: What the clock shows at first, in milliseconds.
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
        result = self._pipeline(*streams)
        if result is not None:
            _collect(result, self._outlet, "output")
        for tag, outlet in self._sides.values():
            if result is None:
                raise ValueError("a pipeline that returns no stream has no side outputs: return the stream before them")
            _collect(result.get_side_output(tag), outlet, f"side output {tag.tag_id}")

    # ------------------------------------------------------------------------------------------------- time passes

    def set_processing_time(self, timestamp: int) -> None:
        """Move the clock forward to a time in milliseconds: the timers that it passes fire.

        A timer at t fires once the clock is past t, so at t + 1.
        """
        now_ms = self._clock.now_ms()
        if timestamp < now_ms:
            raise ValueError(f"processing time is {now_ms} already and does not go back to {timestamp}")
        self._clock.advance(timestamp - now_ms)
        self._run()

    def advance_processing_time(self, millis: int) -> None:
        """Move the clock forward by so many milliseconds."""
        self.set_processing_time(self._clock.now_ms() + millis)

    def processing_time(self) -> int:
        """What the clock shows."""
        return self._clock.now_ms()

    def end_input(self) -> None:
        """All inputs end: event time goes to its end, functions finish."""
        for inlet in self._inlets:
            inlet.ended = True
        self._run()

    def run_until(self, condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
        """Let the pipeline go on until something has happened that takes real time: an answer to an asynchronous call.

        Raises:
            TimeoutError: It has not happened in time.
        """
        stop = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > stop:
                raise TimeoutError(f"what was waited for did not happen within {timeout_s} s")
            self._run()

    def _push(self, number: int, value: Any, timestamp: int | None) -> None:
        self._open_inlet(number).records.append((value, timestamp))
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
            raise RuntimeError("the input has ended: nothing can follow")
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
        """What came out so far, in order; with several subtasks, of each subtask in order."""
        return [value for value, _ in self._outlet.records]

    def output_with_timestamps(self) -> list[tuple[Any, int | None]]:
        """As `output`, each with its event timestamp."""
        return list(self._outlet.records)

    def take_output(self) -> list[Any]:
        """As `output`, and begin anew."""
        values = self.output()
        self._outlet.records.clear()
        return values

    def side_output(self, tag: OutputTag) -> list[Any]:
        """What came out under a tag so far."""
        return [value for value, _ in self.side_output_with_timestamps(tag)]

    def side_output_with_timestamps(self, tag: OutputTag) -> list[tuple[Any, int | None]]:
        """As `side_output`, each with its event timestamp."""
        if tag.tag_id not in self._sides:
            known = ", ".join(map(repr, self._sides)) or "none"
            raise LookupError(f"side output {tag.tag_id!r} is not kept: name it in side_outputs=; there are {known}")
        return list(self._sides[tag.tag_id][1].records)

    def state(self, key: Any, descriptor: StateDescriptor, *, operator: str | None = None) -> Any:
        """What a key has in a keyed state: a value, a list, a dict, or None and empty ones if it has nothing.

        Args:
            key: As the key selector gives it.
            descriptor: As the function declares it.
            operator: Name or uid, if several operators have a state of this name.
        """
        return keyed_state(list(self._living().operators()), key, descriptor, operator)

    def operator_state(self, descriptor: ListStateDescriptor, *, subtask: int = 0, operator: str | None = None) -> Any:
        """The elements of a list in operator state, in one subtask."""
        return operator_state(list(self._living().operators()), subtask, descriptor, operator)

    def broadcast_state(self, descriptor: MapStateDescriptor, *, subtask: int = 0, operator: str | None = None) -> Any:
        """A broadcast state as a dict, in one subtask."""
        return operator_state(list(self._living().operators()), subtask, descriptor, operator)

    def timers(self, key: Any, *, operator: str | None = None) -> list[RegisteredTimer]:
        """The timers that process functions registered for a key and that have not fired, by time."""
        return registered_timers(list(self._living().operators()), key, operator)

    # ---------------------------------------------------------------------------------------------- checkpoints

    def snapshot(self) -> bytes:
        """Take a checkpoint and complete it: functions are notified, sinks commit. It holds all state and timers."""
        return self._living().snapshot()

    def restore(self, snapshot: bytes, parallelism: int | None = None) -> None:
        """Go on from a snapshot, as after a crash: new function objects, the state of then, no watermark yet.

        What came out before stays in `output`. With another parallelism, state is spread over so many subtasks.
        """
        if self._closed:
            raise RuntimeError("the harness is closed")
        if parallelism is not None:
            self._scale = Scale(parallelism, self._scale.max_parallelism)
        self._job.discard()
        self._job = self._start(snapshot)

    # ------------------------------------------------------------------------------------------------- the end

    def close(self) -> None:
        """Close the functions. Once is enough."""
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
            self._job.discard()  # what the test says went wrong is what matters


def _watermarks_of(inlet: Inlet, context: Any) -> InletWatermarks:
    return InletWatermarks(inlet)


def _collect(stream: DataStream, outlet: Outlet, name: str) -> None:
    # Apart from the chain before it: on its way to another operator a record must fit its declared type.
    sink = stream.rebalance().add_sink(OutletSink(outlet)).name(name)
    sink.uid(f"harness-{name}").set_parallelism(1)
