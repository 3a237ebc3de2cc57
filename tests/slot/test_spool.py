"""Messages that wait in a slot: in memory up to a bound, then on disk."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

from ekorn.errors import SpoolError
from ekorn.slot.spool import Spool, SpoolMemory, WaitingBlobs
from ekorn.subtask.wire.frames import RECORDS, Blob, in_order
from ekorn.types.by_value import dumps
from tests.live_jobs import open_files


def memory_of(limit_bytes: int) -> SpoolMemory:
    memory = SpoolMemory()
    memory.limit_bytes = limit_bytes
    return memory


def test_messages_above_the_bound_wait_on_disk_and_read_back_in_any_order(tmp_path: Path) -> None:
    spool = Spool(memory_of(1_000), lambda: str(tmp_path))
    messages = [bytes([n]) * (97 * n % 400) for n in range(100)]
    stored = [spool.add(message[:10], message[10:]) for message in messages]
    assert spool.spilled_bytes >= sum(map(len, messages)) - 1_000
    order = list(range(100))
    random.Random(1).shuffle(order)
    assert [stored[n].read() for n in order] == [messages[n] for n in order]


def test_spools_of_a_slot_share_its_memory_and_give_it_back(tmp_path: Path) -> None:
    memory = memory_of(1_000)
    first, second = (Spool(memory, lambda: str(tmp_path)) for _ in range(2))
    first.add(b"x" * 900)
    second.add(b"y" * 900)
    assert (first.spilled_bytes, second.spilled_bytes) == (0, 900)
    first.close()
    third = Spool(memory, lambda: str(tmp_path))
    third.add(b"z" * 900)
    assert third.spilled_bytes == 0


def test_a_closed_spool_gives_back_exactly_what_it_took(tmp_path: Path) -> None:
    memory = memory_of(1_000)
    for sizes in ((), (600,), (600, 400), (600, 400, 1)):
        spool = Spool(memory, lambda: str(tmp_path))
        for size in sizes:
            spool.add(b"x" * size)
        assert memory.used_bytes == min(sum(sizes), 1_000)
        for _ in range(2):
            spool.close()
            assert memory.used_bytes == 0


def test_a_spool_leaves_no_file_behind(tmp_path: Path) -> None:
    spool = Spool(memory_of(0), lambda: str(tmp_path))
    stored = spool.add(b"x" * 10_000)
    assert len(open_files(tmp_path)) == 1
    assert list(tmp_path.iterdir()) == [], "a killed process leaves nothing either"
    spool.close()
    assert stored.read() == b"x" * 10_000, "a reader that is late still reads"
    del stored
    assert open_files(tmp_path) == set()


def test_a_folder_that_cannot_be_written_is_an_error_that_says_what_to_do() -> None:
    def no_room() -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    spool = Spool(memory_of(100), no_room)
    spool.add(b"x" * 100)
    with pytest.raises(
        SpoolError, match=r"100 bytes of messages.*200 bytes.*No space left.*ekorn.exchange.slot-memory"
    ):
        spool.add(b"x" * 200)


def test_blobs_on_disk_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    blobs = WaitingBlobs(Spool(memory_of(2_000), lambda: str(tmp_path)))
    sent = [
        Blob(1, sender, 0, number, dumps([(RECORDS, [(number, sender)] * 50, None)]))
        for sender in range(3)
        for number in range(20)
    ]
    for blob in sent:
        blobs.add(b"".join(blob.encode()))
    read = [(blob.channel, blob.frames()[0][1][0]) for blob in in_order(blobs)]
    assert read == [((1, sender), (number, sender)) for number in range(20) for sender in range(3)]
