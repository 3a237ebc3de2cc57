"""Marks that overtake: what a subtask records for its snapshot, what it goes on with, and when it waits."""

from __future__ import annotations

from typing import Any

import pytest

from ekorn.clock import ManualClock
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.graph.addresses import ChannelId, SubtaskId
from ekorn.graph.specs import Broadcast, Custom, Forward, Rescale
from ekorn.operators.mark import MarkOrder
from ekorn.slot.host import SlotHost
from ekorn.slot_protocol.deployment import Deployment
from ekorn.subtask.capture import CapturedSubtask
from ekorn.subtask.continuous.channels import ContinuousChannels, Recording, cut
from ekorn.subtask.continuous.continuous_subtask import NEVER
from ekorn.subtask.continuous.source import run_continuously
from ekorn.subtask.in_flight import BlobPart
from ekorn.subtask.wire.frames import EPOCH, RECORDS, WATERMARK, Blob, Frame
from ekorn.types.by_value import dumps
from tests.subtask.bench import Bench, RecordingServices, Target, records


def checkpoint(number: int, *, after_ms: int | None = 0) -> MarkOrder:
    return MarkOrder(number, checkpoint_id=number, overtakes_after_ms=after_ms)


def recorded(captured: CapturedSubtask) -> list[Any]:
    """Return the values that a snapshot holds as in flight."""
    assert captured.in_flight is not None
    frames = [frame for blob in captured.in_flight.blobs for frame in blob.frames()]
    return [value for frame in frames if frame[0] == RECORDS for value in frame[1]]


def test_the_mark_overtakes_what_waits_and_what_comes_before_it() -> None:
    bench, order = Bench(unaligned=True), checkpoint(3)
    bench.give(0, records(1))
    bench.subtask.give_order(order)
    bench.subtask.handle_urgent()
    assert bench.services.take_sent() == [(EPOCH, order)], "the mark leaves before the record is processed"
    assert [ack.epoch for ack in bench.services.acks] == [3]
    assert bench.services.written == [], "more may come before the marks"
    bench.give(1, records(2))
    bench.give(0, records(3), (EPOCH, order))
    bench.give(0, records(4))
    bench.give(1, records(5), (EPOCH, order))
    bench.give(1, records(6))
    bench.subtask.handle_urgent()
    (captured,) = bench.services.written
    assert recorded(captured) == [1, 2, 3, 5]
    written = captured.write(Target())
    (head,) = written.operators
    assert head.in_flight is not None
    assert written.alignment.unaligned and written.alignment.in_flight_bytes == head.in_flight.size_bytes > 0
    assert bench.run() == [1, 2, 3, 4, 5, 6]
    assert len(bench.services.acks) == 1, "a mark that comes late ends nothing"
    bench.host.shutdown()


def test_a_checkpoint_of_an_idle_job_stores_nothing() -> None:
    bench, order = Bench(unaligned=True), checkpoint(3)
    bench.subtask.give_order(order)
    bench.subtask.handle_urgent()
    bench.give(0, (EPOCH, order))
    bench.give(1, (EPOCH, order))
    bench.subtask.handle_urgent()
    written = bench.services.written[0].write(Target())
    assert [operator.in_flight for operator in written.operators] == [None]
    assert written.alignment.in_flight_bytes == 0
    bench.host.shutdown()


def test_a_blob_that_comes_between_two_looks_is_recorded_before_it_is_processed() -> None:
    bench, order = Bench(unaligned=True), checkpoint(0)
    bench.subtask.give_order(order)
    bench.subtask.handle_urgent()
    bench.give(0, records(1), (EPOCH, order))
    bench.subtask.take()
    bench.give(1, records(2), (EPOCH, order))
    bench.subtask.take()
    assert bench.services.take_sent() == [(EPOCH, order), 1, 2]
    assert recorded(bench.services.written[0]) == [1, 2]
    bench.host.shutdown()


def test_what_the_subtask_has_processed_before_the_order_is_not_recorded() -> None:
    bench, order = Bench(unaligned=True), checkpoint(1)
    bench.give(0, records(1), (EPOCH, order))
    bench.give(0, records(2))
    assert bench.run() == [1]
    bench.subtask.give_order(order)
    bench.give(1, records(3), (EPOCH, order))
    bench.subtask.handle_urgent()
    assert recorded(bench.services.written[0]) == [3], "channel 0 was ahead: its next record is behind the mark"
    assert bench.run() == [(EPOCH, order), 2, 3]
    bench.host.shutdown()


def test_what_is_still_waiting_belongs_to_the_next_checkpoint_too() -> None:
    bench, first, second = Bench(unaligned=True), checkpoint(1), checkpoint(2)
    bench.give(0, records(1), (EPOCH, first))
    bench.give(1, (EPOCH, first))
    bench.subtask.give_order(first)
    bench.subtask.handle_urgent()
    bench.give(0, records(2), (EPOCH, second))
    bench.give(1, (EPOCH, second))
    bench.subtask.give_order(second)
    bench.subtask.handle_urgent()
    assert [recorded(captured) for captured in bench.services.written] == [[1], [1, 2]]
    assert bench.run() == [(EPOCH, first), (EPOCH, second), 1, 2]
    bench.host.shutdown()


def test_an_epoch_that_ends_while_blobs_are_recorded_adds_none_twice() -> None:
    bench, order = Bench(unaligned=True), checkpoint(1)
    bench.give(0, records(1))
    bench.subtask.give_order(order)
    bench.subtask.handle_urgent()
    bench.subtask.give_order(MarkOrder(2, overtakes_after_ms=0))
    bench.subtask.handle_urgent()
    bench.give(0, (EPOCH, order))
    bench.give(1, (EPOCH, order))
    bench.subtask.handle_urgent()
    assert recorded(bench.services.written[0]) == [1]
    bench.host.shutdown()


def test_a_record_that_the_program_changes_is_stored_as_it_was() -> None:
    bench = Bench(unaligned=True)
    captured = bench.subtask.subtask.snapshot(1)
    assert isinstance(captured, CapturedSubtask)
    channel = ChannelId(bench.exchange, 0)
    part = BlobPart(channel, [records(["as it was"])], 10)
    recording = Recording(captured, 1, [channel], 0.0)
    recording.add(part)
    part.frames()[0][1][0].append("changed")
    assert recorded(recording.captured(0.0)) == [["as it was"]]
    bench.host.shutdown()


def test_a_mark_that_comes_in_time_is_aligned() -> None:
    bench, order = Bench(unaligned=True), checkpoint(0, after_ms=100)
    bench.subtask.give_order(order)
    bench.give(0, records(1), (EPOCH, order))
    assert bench.subtask.handle_urgent() > 0
    assert bench.run() == [1]
    bench.clock.advance(99)
    bench.subtask.handle_urgent()
    assert not bench.services.acks
    bench.give(1, records(2), (EPOCH, order))
    assert bench.run() == [2, (EPOCH, order)]
    (captured,) = bench.services.written
    assert captured.in_flight is None and not captured.alignment.unaligned
    bench.clock.advance(10)
    bench.subtask.handle_urgent()
    assert len(bench.services.acks) == 1
    bench.host.shutdown()


def test_a_mark_that_does_not_come_in_time_overtakes() -> None:
    bench, order = Bench(unaligned=True), checkpoint(0, after_ms=100)
    bench.subtask.give_order(order)
    bench.give(0, records(1), (EPOCH, order))
    bench.give(0, records(2))
    bench.subtask.handle_urgent()
    assert bench.run() == [1]
    assert bench.services.held, "channel 0 is ahead"
    bench.give(1, records(3))
    bench.clock.advance(100)
    bench.subtask.handle_urgent()
    bench.give(1, (EPOCH, order))
    assert bench.run() == [(EPOCH, order), 2, 3]
    (captured,) = bench.services.written
    assert recorded(captured) == [3]
    assert (captured.alignment.aligned_ms, captured.alignment.held_bytes > 0) == (100, True)
    bench.host.shutdown()


def test_an_epoch_without_a_checkpoint_records_nothing() -> None:
    bench, order = Bench(unaligned=True), MarkOrder(4, overtakes_after_ms=0)
    bench.give(0, records(1))
    bench.subtask.give_order(order)
    bench.subtask.handle_urgent()
    assert not bench.subtask.is_recording and not bench.services.recorded
    assert [ack.epoch for ack in bench.services.acks] == [4]
    bench.host.shutdown()


def test_an_aborted_checkpoint_records_no_more() -> None:
    bench, order = Bench(unaligned=True), checkpoint(4)
    bench.subtask.give_order(order)
    bench.subtask.handle_urgent()
    assert bench.subtask.is_recording
    bench.subtask.checkpoint_aborted(3)
    assert bench.subtask.is_recording
    bench.subtask.checkpoint_aborted(4)
    assert not bench.subtask.is_recording
    bench.host.shutdown()


def test_a_savepoint_waits_for_its_marks() -> None:
    bench, order = Bench(unaligned=True), checkpoint(0, after_ms=None)
    bench.give(0, records(1))
    bench.subtask.give_order(order)
    bench.subtask.handle_urgent()
    assert not bench.services.acks
    assert bench.run() == [1]
    bench.host.shutdown()


@pytest.mark.parametrize("partition", ["forward", "rescale", "broadcast", "partition_custom"])
def test_on_channels_that_stay_in_step_a_checkpoint_waits_for_its_mark(partition: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.enable_checkpointing(1_000).get_checkpoint_config().enable_unaligned_checkpoints()
    env.get_checkpoint_config().set_force_unaligned_checkpoints(True)
    numbers = env.from_collection([1]).set_parallelism(1).rebalance().map(lambda v: v)
    partitioner = (lambda key, count: 0, lambda v: v) if partition == "partition_custom" else ()
    getattr(numbers, partition)(*partitioner).map(lambda v: v).name("last").start_new_chain().print()
    graph = env.job_graph("in step")
    vertex = next(v for v in graph.vertices if v.name.startswith("last"))
    (exchange,) = graph.inputs_of(vertex.id)
    assert isinstance(exchange.partitioning, (Forward, Rescale, Broadcast, Custom))
    services, last = RecordingServices(), SubtaskId(vertex.id, 0)
    host = SlotHost(0, ManualClock(1_000), lambda event: None)
    host.deploy(Deployment("a" * 32, graph, 0, continuous=True), [last])
    subtask = run_continuously(host.subtasks[last], services)
    assert isinstance(subtask, ContinuousChannels)
    subtask.give_order(MarkOrder(1, overtakes_after_ms=0))
    subtask.handle_urgent()
    assert [ack.epoch for ack in services.acks] == [1], "without a checkpoint nothing depends on where the epoch ends"
    order = checkpoint(2)
    subtask.give_order(order)
    assert subtask.handle_urgent() == NEVER, "the blob with the mark wakes the slot; until then its thread sleeps"
    assert [ack.epoch for ack in services.acks] == [1]
    for sender in range(1 if partition in ("forward", "rescale") else 2):
        subtask.give(Blob(exchange.id, sender, 0, 0, dumps([records(7), (EPOCH, order)]), 2))
    while subtask.has_input:
        subtask.take()
    assert [ack.epoch for ack in services.acks] == [1, 2]
    assert services.written[0].in_flight is None
    host.shutdown()


def test_a_blob_is_cut_into_parts_in_order_and_the_last_one_has_the_mark() -> None:
    order = MarkOrder(5)
    frames: list[Frame] = [(RECORDS, [1, 2, 3], [10, 20, 30]), (WATERMARK, 30), (RECORDS, [4, 5], None), (EPOCH, order)]
    parts: list[BlobPart] = []
    rest: Blob | BlobPart | None = Blob(0, 1, 0, 7, dumps(frames), 5)
    while rest is not None:
        part, rest = cut(rest, 2)
        parts.append(part)
    assert [part.frames() for part in parts] == [
        [(RECORDS, [1, 2], [10, 20])],
        [(RECORDS, [3], [30]), (WATERMARK, 30)],
        [(RECORDS, [4, 5], None), (EPOCH, order)],
    ]
    assert [part.mark for part in parts] == [-1, -1, 5]
    assert {(part.channel, part.sequence) for part in parts} == {((0, 1), 7)}
