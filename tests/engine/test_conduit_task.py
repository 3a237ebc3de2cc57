"""The task that carries blobs between Spark's shuffle and a slot, without Spark: batches in, rows out."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tamias.engine.spark.task_side.conduit_task import LEAST_ROW_BYTES, ConduitTask, TaskAddress, gathered
from tamias.engine.spark.task_side.level_task import HostedSubtask
from tamias.engine.spark.task_side.rows import ShuffleRow
from tamias.errors import SlotLostError
from tamias.graph.addresses import SubtaskId
from tamias.slot.link import Link
from tamias.subtask.wire.frames import IDLE, RECORDS, WATERMARK, Blob, Destination, Frame
from tamias.types.by_value import dumps

HOSTED = HostedSubtask(SubtaskId(1, 0), 0, "nowhere", 0)
MINE, OTHERS = Blob(0, 0, 0, 0, b"mine"), Blob(7, 0, 0, 0, b"others")


def task(*, passes_rows_on: bool) -> ConduitTask:
    routes = {Destination(5, 0): TaskAddress(2, 0)}
    return ConduitTask(1, (HOSTED,), 1, routes, b"", attempt=0, passes_rows_on=passes_rows_on)


class Between:
    """The connection between a task and its slot."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.task, self.slot = Link(ours), Link(theirs)
        for link in (self.task, self.slot):
            link.settimeout(30)


@pytest.fixture
def between() -> Iterator[Between]:
    made = Between()
    yield made
    made.task.close()
    made.slot.close()


def whole(blob: Blob) -> bytes:
    return b"".join(blob.encode())


def batch(level: int, blob: Blob) -> Any:
    rows = [ShuffleRow(0, level, 0, whole(blob)).encode(), b""]
    return pa.record_batch([pa.array([0, 0], pa.int32()), pa.array(rows, pa.binary())], names=["via", "row"])


@pytest.mark.parametrize("passes_rows_on", [False, True])
def test_rows_go_to_the_slot_and_what_leaves_it_goes_to_the_next_level(between: Between, passes_rows_on: bool) -> None:
    left = Blob(5, 0, 0, 0, b"left")
    between.slot.send(*left.encode())
    between.slot.send(b"")  # the subtask has finished
    arriving = [batch(1, MINE), *([batch(3, OTHERS)] if passes_rows_on else [])]
    found = list(filter(None, task(passes_rows_on=passes_rows_on).rows(arriving, between.task, HOSTED)))
    assert between.slot.receive() == whole(MINE)
    passed = {(3, whole(OTHERS))} if passes_rows_on else set()
    assert {(row.level, bytes(row.data)) for row in found} == {(2, whole(left))} | passed


@pytest.mark.parametrize("passes_rows_on", [False, True])
def test_input_that_cannot_be_read_fails_the_task_instead_of_leaving_the_subtask_without(
    between: Between, passes_rows_on: bool
) -> None:
    def broken() -> Iterator[Any]:
        yield batch(1, MINE)
        raise ValueError("the shuffle is broken")

    with pytest.raises(ValueError, match="the shuffle is broken"):
        list(task(passes_rows_on=passes_rows_on).rows(broken(), between.task, HOSTED))
    assert between.slot.receive() == whole(MINE)
    with pytest.raises(EOFError):
        between.slot.receive()


@pytest.mark.parametrize("passes_rows_on", [False, True])
def test_a_slot_that_is_gone_fails_the_task(between: Between, passes_rows_on: bool) -> None:
    between.slot.close()
    with pytest.raises(SlotLostError):
        list(task(passes_rows_on=passes_rows_on).rows([], between.task, HOSTED))


def test_rows_that_wait_travel_together_and_a_row_that_nothing_follows_travels_at_once(between: Between) -> None:
    blobs = [Blob(5, 0, 0, number, b"left") for number in range(3)]
    for blob in blobs[:2]:
        between.slot.send(*blob.encode())
    groups = gathered(task(passes_rows_on=False).rows([], between.task, HOSTED))
    assert [bytes(row.data) for row in next(groups)] == [whole(blob) for blob in blobs[:2]]
    between.slot.send(*blobs[2].encode())
    assert [bytes(row.data) for row in next(groups)] == [whole(blobs[2])]
    between.slot.send(b"")
    assert list(groups) == []


def test_a_batch_of_rows_is_bounded() -> None:
    rows = [ShuffleRow(0, 2, 0, bytes(400_000)) for _ in range(10)]
    assert [len(some) for some in gathered(rows)] == [3, 3, 3, 1]


@pytest.mark.parametrize("frame", [(IDLE, True), (WATERMARK, 0), (RECORDS, [None], None)])
def test_a_row_with_the_smallest_blob_is_large_enough_for_spark_to_hand_it_on(frame: Frame) -> None:
    row = ShuffleRow(0, 1, 0, whole(Blob(0, 0, 0, 0, dumps([frame])))).encode()
    assert len(row) >= LEAST_ROW_BYTES
