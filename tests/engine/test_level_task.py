"""A Spark task between shuffle and slot: it holds one blob at a time."""

from __future__ import annotations

import itertools
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ekorn.engine.spark.task_side.level_task import ExchangeTarget, HostedSubtask, LevelTask
from ekorn.engine.spark.task_side.rows import DRIVER, POISON, ShuffleRow, decode, shuffle_pairs
from ekorn.graph.addresses import SubtaskId
from ekorn.links.link import Link, accept, listen
from ekorn.operators.epoch import EpochOrder
from ekorn.slot_protocol.task_messages import ACK, RunEpoch
from ekorn.subtask.wire.frames import Blob
from ekorn.types.by_value import dumps

SECRET = b"s" * 32
REGION = 7
BLOB = b"".join(Blob(1, 0, 0, 0, b"payload").encode())


class RecordingSlot:
    """Takes one call: counts the blobs that have arrived, and answers when the input is complete."""

    def __init__(self, address: str, answer: list[bytes]) -> None:
        self._socket = listen(address)
        self._answer = answer
        self.received = 0
        self.request: RunEpoch | None = None
        self.ran = False
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        link = accept(self._socket.accept()[0], SECRET)
        assert link is not None
        try:
            self.request = pickle.loads(link.receive())
            while link.receive():
                with self.changed:
                    self.received += 1
                    self.changed.notify_all()
        except EOFError:
            return
        self.ran = True
        for message in self._answer:
            link.send(message)

    def has(self, blobs: int) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: self.received >= blobs, timeout=60.0)


def level_task(address: str, first_partition: int = 0) -> LevelTask:
    hosted = HostedSubtask(SubtaskId(1, 0), 0, address, REGION)
    return LevelTask(
        1, (hosted,), 2, {1: ExchangeTarget(2, first_partition)}, SECRET, 0, EpochOrder(3), repeatable=False
    )


def encoded(level: int, partition: int, data: bytes = b"") -> bytes:
    return ShuffleRow(0, level, partition, data).encode()


@pytest.fixture
def slot(tmp_path: Path) -> RecordingSlot:
    return RecordingSlot(str(tmp_path / "slot"), [BLOB, ACK + b"ack"])


def test_each_blob_is_with_the_slot_before_the_next_row_is_read(slot: RecordingSlot, tmp_path: Path) -> None:
    def rows() -> Iterator[bytes]:
        for number in range(1, 6):
            yield encoded(1, 0, BLOB)
            assert slot.has(number), "the blob was held back"

    sent = list(level_task(str(tmp_path / "slot"))(0, rows()))
    assert [(row.level, bytes(row.data)) for row in sent] == [(2, BLOB), (DRIVER, b"ack")]


def test_rows_for_other_levels_pass_between_the_blobs(slot: RecordingSlot, tmp_path: Path) -> None:
    rows = iter([encoded(1, 0, BLOB), encoded(5, 3, b"deep"), encoded(1, 0, BLOB)])
    first = next(level_task(str(tmp_path / "slot"))(0, rows))
    assert (first.via, first.level, first.partition, bytes(first.data)) == (1, 5, 3, b"deep")
    assert len(list(rows)) == 1, "the last row has not been read"


def test_a_slot_whose_region_has_failed_does_not_run_although_it_got_blobs(slot: RecordingSlot, tmp_path: Path) -> None:
    rows = [encoded(1, 0, BLOB), encoded(POISON, REGION), encoded(1, 0, BLOB)]
    sent = list(level_task(str(tmp_path / "slot"))(0, rows))
    slot.thread.join(60.0)
    assert [(row.via, row.level, row.partition) for row in sent] == [(0, POISON, REGION), (1, POISON, REGION)]
    assert not slot.ran


def test_the_failure_of_another_region_does_not_keep_a_slot_from_running(slot: RecordingSlot, tmp_path: Path) -> None:
    rows = [encoded(POISON, REGION + 1), encoded(1, 0, BLOB)]
    sent = list(level_task(str(tmp_path / "slot"))(0, rows))
    assert [row.level for row in sent] == [2, DRIVER]


def test_a_blob_goes_to_the_partition_of_its_target_on_the_next_level(slot: RecordingSlot, tmp_path: Path) -> None:
    (to_next, _) = level_task(str(tmp_path / "slot"), first_partition=5)(0, [encoded(1, 0, BLOB)])
    assert (to_next.via, to_next.level, to_next.partition) == (5, 2, 5)


def test_rows_behind_a_lost_slot_still_pass(tmp_path: Path) -> None:
    rows = [encoded(1, 0, BLOB), encoded(DRIVER, 0, dumps("an acknowledgement"))]
    sent = list(level_task(str(tmp_path / "nobody"))(0, rows))
    assert [row.level for row in sent] == [DRIVER, DRIVER, POISON, POISON]
    assert bytes(sent[0].data) == dumps("an acknowledgement")


def test_a_row_travels_as_its_partition_and_itself() -> None:
    key, row = shuffle_pairs([ShuffleRow(3, 2, 1, b"data")])
    assert key == (3).to_bytes(8, "big")
    level, partition, data = decode(row)
    assert (level, partition, bytes(data)) == (2, 1, b"data")


class AnsweringSlot:
    """Answers any number of calls, over any number of connections, each with a blob and its own number."""

    def __init__(self, address: str) -> None:
        self._socket = listen(address)
        self._calls = itertools.count(1)
        self.connections = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            link = accept(self._socket.accept()[0], SECRET)
            assert link is not None
            self.connections += 1
            threading.Thread(target=self._converse, args=(link,), daemon=True).start()

    def _converse(self, link: Link) -> None:
        try:
            while link.receive():  # the request
                while link.receive():  # a blob; nothing after the last
                    pass
                for message in (BLOB, ACK + b"ack %d" % next(self._calls)):
                    link.send(message)
        except (EOFError, OSError):
            link.close()


def test_the_tasks_of_a_python_worker_use_one_connection_to_a_slot(tmp_path: Path) -> None:
    slot = AnsweringSlot(str(tmp_path / "slot"))
    for number in (1, 2, 3):
        *_, last = level_task(str(tmp_path / "slot"))(0, [encoded(1, 0, BLOB)])
        assert bytes(last.data) == b"ack %d" % number
    assert slot.connections == 1


def test_the_rest_of_an_answer_that_spark_did_not_take_is_read_by_no_other_task(tmp_path: Path) -> None:
    """Spark closes the generator of a task that it kills. The Python worker goes on with the next task."""
    AnsweringSlot(str(tmp_path / "slot"))
    first = level_task(str(tmp_path / "slot"))(0, [encoded(1, 0, BLOB)])
    assert next(first).level == 2, "the blob is taken, and the acknowledgement is not"
    first.close()  # type: ignore[attr-defined]  # a generator
    for number in (2, 3):
        sent = list(level_task(str(tmp_path / "slot"))(0, [encoded(1, 0, BLOB)]))
        assert [(row.level, bytes(row.data)) for row in sent] == [(2, BLOB), (DRIVER, b"ack %d" % number)]
