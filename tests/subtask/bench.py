"""A subtask that runs continuously, and what it asks its slot for."""

from __future__ import annotations

from typing import Any

from ekorn.clock import ManualClock
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import KeyedProcessFunction
from ekorn.graph.addresses import SubtaskId
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.slot.host import SlotHost
from ekorn.slot_protocol.deployment import Deployment
from ekorn.state.snapshots import StateFile
from ekorn.state.state_files import write_state
from ekorn.storage.memory import MemoryFiles
from ekorn.subtask.capture import CapturedSubtask
from ekorn.subtask.continuous.channels import ContinuousChannels
from ekorn.subtask.continuous.source import run_continuously
from ekorn.subtask.subtask import Subtask
from ekorn.subtask.wire.frames import EPOCH, NO_MARK, RECORDS, Blob, Frame, ReceivedBlob
from ekorn.types.by_value import dumps


class Alarm(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 100)
        yield value

    def on_timer(self, timestamp, ctx):
        yield "alarm"


class Target:
    """Writes into memory, small files at a time."""

    def __init__(self, payload_bytes: int = 1 << 20) -> None:
        self.files = MemoryFiles()
        self.bytes_written = 0
        self.payload_bytes = payload_bytes
        self._names = iter(range(1_000))

    def shared(self, label: str) -> str:
        raise AssertionError("no other checkpoint refers to blobs in flight")

    def exclusive(self, label: str) -> str:
        return f"chk-1/{next(self._names)}"

    def write(self, path: str, payload: bytes) -> StateFile:
        return write_state(self.files, path, payload, 0)


class RecordingServices:
    """Notes what a subtask asks its slot for."""

    def __init__(self) -> None:
        self.sent: list[Frame] = []
        self.sizes: list[int] = []  # of the blobs that were sent
        self.acks: list[MarkAck] = []
        self.held: list[ReceivedBlob] = []
        self.recorded: list[ReceivedBlob] = []
        self.written: list[CapturedSubtask] = []
        self.taken_blobs = 0
        self.defer_error: Exception | None = None  # raised by `defer`
        self.capture_error: Exception | None = None  # raised by `capture`

    def send(self, item: Any) -> None:
        self.sizes.append(item.size_bytes)
        self.sent += item.frames()

    def taken(self, blob: ReceivedBlob) -> None:
        self.taken_blobs += 1

    def defer(self, blob: ReceivedBlob) -> ReceivedBlob:
        if self.defer_error is not None:
            raise self.defer_error
        self.held.append(blob)
        return blob

    def released(self) -> None:
        self.held.clear()

    def record(self, blob: ReceivedBlob) -> ReceivedBlob:
        self.recorded.append(blob)
        return blob

    def capture(self, subtask: Subtask, order: MarkOrder) -> CapturedSubtask | None:
        if self.capture_error is not None:
            raise self.capture_error
        assert not self.held or order.checkpoint_id is None or self.sent[-1] == (EPOCH, order)
        if order.checkpoint_id is None:
            return None
        captured = subtask.snapshot(order.checkpoint_id)
        assert isinstance(captured, CapturedSubtask)
        return captured

    def write(self, captured: CapturedSubtask) -> None:
        self.written.append(captured)

    def acknowledge(self, ack: MarkAck) -> None:
        self.acks.append(ack)

    def take_sent(self) -> list[Any]:
        sent, self.sent = self.sent, []
        return [value for frame in sent for value in (frame[1] if frame[0] == RECORDS else [frame])]


class Bench:
    """A subtask with two input channels and one output, on a clock of its own."""

    def __init__(self, *, unaligned: bool = False) -> None:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        env.enable_checkpointing(1_000).get_checkpoint_config().enable_unaligned_checkpoints(unaligned)
        numbers = env.from_collection([1]).set_parallelism(1).rebalance().map(lambda v: v)
        alarms = numbers.key_by(lambda v: 0).process(Alarm()).name("alarm").set_parallelism(1)
        alarms.rebalance().map(lambda v: v).set_parallelism(1).print()
        graph = env.job_graph("bench")
        vertex = next(v for v in graph.vertices if v.name == "alarm")
        self.exchange = graph.inputs_of(vertex.id)[0].id
        self.clock, self.services = ManualClock(1_000), RecordingServices()
        self.host = SlotHost(0, self.clock, lambda event: None)
        self.host.deploy(Deployment("a" * 32, graph, 0, continuous=True), [SubtaskId(vertex.id, 0)])
        subtask = run_continuously(self.host.subtasks[SubtaskId(vertex.id, 0)], self.services)
        assert isinstance(subtask, ContinuousChannels)
        self.subtask = subtask
        self._sequences = [0, 0]

    def give(self, sender: int, *frames: Frame) -> None:
        mark = frames[-1][1].number if frames[-1][0] == EPOCH else NO_MARK
        blob = Blob(self.exchange, sender, 0, self._sequences[sender], dumps(list(frames)), mark)
        self._sequences[sender] += 1
        self.subtask.give(blob)

    def run(self) -> list[Any]:
        while self.subtask.has_input:
            self.subtask.take()
        return self.services.take_sent()


def records(*values: Any) -> Frame:
    return (RECORDS, list(values), None)
