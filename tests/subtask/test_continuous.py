"""A subtask that runs continuously: what it does with blobs, marks and the clock, one step at a time."""

from __future__ import annotations

from typing import Any

import pytest

from tamias.clock import ManualClock
from tamias.datastream import StreamExecutionEnvironment
from tamias.datastream.functions import KeyedProcessFunction
from tamias.errors import DeploymentError, SlotLostError, SpoolError
from tamias.graph.addresses import SubtaskId
from tamias.operators.epoch import Ack, EpochOrder
from tamias.slot.deployment import Deployment
from tamias.slot.host import SlotHost
from tamias.subtask.capture import CapturedSubtask
from tamias.subtask.continuous import ContinuousChannels, run_continuously
from tamias.subtask.subtask import Subtask
from tamias.subtask.wire.frames import EPOCH, NO_MARK, RECORDS, WATERMARK, Blob, Frame, ReceivedBlob
from tamias.types.by_value import dumps


class Alarm(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 100)
        yield value

    def on_timer(self, timestamp, ctx):
        yield "alarm"


class Surroundings:
    """Notes what a subtask asks its slot for."""

    def __init__(self) -> None:
        self.sent: list[Frame] = []
        self.acks: list[Ack] = []
        self.held: list[ReceivedBlob] = []
        self.recorded: list[ReceivedBlob] = []
        self.written: list[CapturedSubtask] = []
        self.taken_blobs = 0
        self.hold_error: Exception | None = None  # raised by `hold`
        self.capture_error: Exception | None = None  # raised by `capture`

    def send(self, item: Any) -> None:
        self.sent += item.frames()

    def taken(self, blob: ReceivedBlob) -> None:
        self.taken_blobs += 1

    def hold(self, blob: ReceivedBlob) -> ReceivedBlob:
        if self.hold_error is not None:
            raise self.hold_error
        self.held.append(blob)
        return blob

    def released(self) -> None:
        self.held.clear()

    def record(self, blob: ReceivedBlob) -> ReceivedBlob:
        self.recorded.append(blob)
        return blob

    def capture(self, subtask: Subtask, order: EpochOrder) -> CapturedSubtask | None:
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

    def acknowledge(self, ack: Ack) -> None:
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
        self.clock, self.around = ManualClock(1_000), Surroundings()
        self.host = SlotHost(0, self.clock, lambda event: None)
        self.host.deploy(Deployment("a" * 32, graph, 0, continuous=True), [SubtaskId(vertex.id, 0)])
        subtask = run_continuously(self.host.subtasks[SubtaskId(vertex.id, 0)], self.around)
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
        return self.around.take_sent()


def records(*values: Any) -> Frame:
    return (RECORDS, list(values), None)


def test_a_record_leaves_at_once_and_a_timer_when_it_is_due() -> None:
    bench = Bench()
    bench.give(0, records(1))
    assert bench.run() == [1]
    assert bench.subtask.next_timer_ms() == 1_101
    bench.clock.advance(101)
    bench.subtask.advance_clock()
    bench.subtask.flush()
    assert bench.around.take_sent() == ["alarm"]
    bench.host.shutdown()


def test_records_behind_a_mark_wait_until_the_mark_has_come_on_every_channel() -> None:
    bench, order = Bench(), EpochOrder(7)
    bench.give(0, records(1), (EPOCH, order))
    bench.give(0, records(2))
    bench.give(1, records(3))
    assert bench.run() == [1, 3]
    assert len(bench.around.held) == 1 and not bench.around.acks
    bench.give(1, records(4), (EPOCH, order))
    bench.give(1, records(5))
    assert bench.run() == [4, (EPOCH, order), 2, 5]
    (ack,) = bench.around.acks
    assert (ack.epoch, ack.records_in, ack.held_blobs) == (7, 3, 1)
    assert bench.around.taken_blobs == 5, "a blob that waited is taken from its queue once"
    bench.host.shutdown()


def test_watermarks_of_a_channel_that_is_ahead_wait_too() -> None:
    bench, order = Bench(), EpochOrder(0)
    bench.give(0, (WATERMARK, 10), (EPOCH, order))
    bench.give(0, (WATERMARK, 50))
    bench.give(1, (WATERMARK, 20), (EPOCH, order))
    assert bench.run() == [(WATERMARK, 10), (EPOCH, order), (WATERMARK, 20)]
    bench.host.shutdown()


def test_a_lost_blob_is_noticed() -> None:
    bench = Bench()
    bench.give(0, records(1))
    bench.run()
    bench.subtask.give(Blob(bench.exchange, 0, 0, 2, dumps([records(3)])))
    with pytest.raises(DeploymentError, match=r"blob 2 .* in place of blob 1"):
        bench.run()
    bench.host.shutdown()


def test_an_error_of_the_slot_is_not_blamed_on_an_operator() -> None:
    bench, order = Bench(), EpochOrder(0, checkpoint_id=1)
    bench.around.hold_error = SpoolError(10, 0, "no space left on device")
    bench.give(0, (EPOCH, order))
    bench.give(0, records(1))
    with pytest.raises(SpoolError, match="no space left"):
        bench.run()
    bench.around.capture_error = SlotLostError(0, "it was not told where savepoint 1 goes")
    bench.give(1, (EPOCH, order))
    with pytest.raises(SlotLostError, match="not told where"):
        bench.run()
    bench.host.shutdown()


def test_nothing_happens_behind_the_mark_of_a_savepoint_that_the_job_stops_with() -> None:
    bench, stop, next_one = Bench(), EpochOrder(0, checkpoint_id=1, suspends=True), EpochOrder(1)
    bench.give(0, records(1))
    for sender in (0, 1):
        bench.give(sender, (EPOCH, stop))
    assert bench.run() == [1, (EPOCH, stop)]
    bench.clock.advance(10_000)
    assert bench.subtask.next_timer_ms() is None
    bench.subtask.advance_clock()
    bench.subtask.emit_periodic_watermarks()
    bench.subtask.flush()
    assert bench.around.take_sent() == [], "the timer is in the savepoint: it fires in the job that continues from it"
    for sender in (0, 1):  # the savepoint could not be taken, and the job goes on
        bench.give(sender, (EPOCH, next_one))
    assert bench.run() == ["alarm", (EPOCH, next_one)]
