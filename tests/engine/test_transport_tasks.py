"""The tasks that carry blobs between Spark's shuffle and a slot, without Spark: blobs in, rows out, and the reverse."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from ekorn.engine.spark.task_side.level_task import HostedSubtask
from ekorn.engine.spark.task_side.transport_tasks import (
    CarriedBlob,
    InletRows,
    InletTask,
    NoRows,
    OutletRows,
    OutletTask,
)
from ekorn.errors import SlotLostError
from ekorn.graph.addresses import SubtaskId
from ekorn.links.link import Link, accept, listen
from ekorn.slot_protocol.task_messages import FAILED, Attach, Carries
from ekorn.subtask.wire.frames import Blob, Destination
from ekorn.types.by_value import dumps

HOSTED = HostedSubtask(SubtaskId(1, 0), 0, "nowhere", 0)
OUTLET = OutletTask((HOSTED,), {Destination(5, 0): 3, Destination(5, 1): 4}, b"", attempt=0)
INLET = InletTask((HOSTED,), b"", attempt=0)
BUFFER = 4096


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


def left(target: int, number: int = 0) -> Blob:
    return Blob(5, 0, target, number, b"left")


# ------------------------------------------------------------------------------------------------------- what leaves


def test_what_leaves_a_subtask_goes_to_the_partition_of_its_target(between: Between) -> None:
    for target in (1, 0):
        between.slot.send(*left(target).encode())
    between.slot.send(b"")  # the subtask has finished
    found = list(filter(None, OUTLET.taken_from(between.task, HOSTED)))
    assert found == [CarriedBlob(4, whole(left(1))), CarriedBlob(3, whole(left(0)))]


def test_blobs_that_wait_leave_together_and_one_that_nothing_follows_leaves_at_once(between: Between) -> None:
    for number in range(2):
        between.slot.send(*left(0, number).encode())
    taken = OUTLET.taken_from(between.task, HOSTED)
    assert [next(taken), next(taken)] == [CarriedBlob(3, whole(left(0, number))) for number in range(2)]
    assert next(taken) is None, "no message waits: what was taken is to leave now"
    between.slot.send(*left(0, 2).encode())
    assert next(taken) == CarriedBlob(3, whole(left(0, 2)))
    assert next(taken) is None
    between.slot.send(b"")
    assert list(taken) == []


def test_a_slot_that_is_gone_fails_the_task_that_takes_from_it(between: Between) -> None:
    between.slot.close()
    with pytest.raises(SlotLostError):
        list(OUTLET.taken_from(between.task, HOSTED))


def test_a_slot_that_refuses_a_task_says_why(between: Between) -> None:
    refusal = SlotLostError(0, "it does not wait for a task of attempt 7")
    for _ in range(2):
        between.slot.send(FAILED, dumps(refusal))
    with pytest.raises(SlotLostError, match="a task of attempt 7"):
        list(OUTLET.taken_from(between.task, HOSTED))
    between.slot.close()  # as a slot does then
    with pytest.raises(SlotLostError, match="a task of attempt 7"):
        INLET.bring_to(between.task, HOSTED, [memoryview(bytes(1 << 20))] * 2)


# ------------------------------------------------------------------------------------------------------ what arrives


def test_what_arrives_goes_to_the_slot_and_the_task_ends_when_the_subtask_needs_no_more(between: Between) -> None:
    bringing = threading.Thread(target=INLET.bring_to, args=(between.task, HOSTED, [memoryview(b"one"), b"two"]))
    bringing.start()
    assert [between.slot.receive(), between.slot.receive()] == [b"one", b"two"]
    bringing.join(0.1)
    assert bringing.is_alive(), "the slot would take a task that ends before it for lost"
    between.slot.send(b"")
    bringing.join(30)
    assert not bringing.is_alive()


def test_a_slot_that_is_gone_fails_the_task_that_brings_to_it(between: Between) -> None:
    between.slot.close()
    with pytest.raises(SlotLostError):
        INLET.bring_to(between.task, HOSTED, [memoryview(b"one")] * 2)


@pytest.mark.parametrize("error", [ValueError, EOFError])
def test_input_that_cannot_be_read_breaks_the_connection(tmp_path: Path, error: type[Exception]) -> None:
    def broken() -> Iterator[memoryview]:
        yield memoryview(b"one")
        raise error("the shuffle is broken")

    secret, path, received = b"s" * 32, str(tmp_path / "slot"), []

    def serve() -> None:
        link = accept(listening.accept()[0], secret)
        assert link is not None
        with contextlib.suppress(EOFError):  # else the subtask would wait for ever
            while True:
                received.append(link.receive())

    with listen(path) as listening:
        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        hosted = HostedSubtask(SubtaskId(1, 0), 0, path, 0)
        with pytest.raises(error, match="the shuffle is broken"):
            list(InletTask((hosted,), secret, attempt=7)(0, broken()))
        serving.join(30)
        assert not serving.is_alive()
    assert [pickle.loads(received[0]), *received[1:]] == [Attach(SubtaskId(1, 0), 7, Carries.INPUT), b"one"]


# ------------------------------------------------------------------------------------------------------ rows of Spark


class Pipe:
    """A connection of a Python worker with Spark."""

    def __init__(self, *, tcp: bool = False) -> None:
        if tcp:
            with socket.create_server(("127.0.0.1", 0)) as listening:
                ours = socket.create_connection(listening.getsockname())
                self.spark = listening.accept()[0]
        else:
            self.spark, ours = socket.socketpair()
        self.stream: BinaryIO = open(ours.detach(), "wb", BUFFER)  # noqa: SIM115 - as PySpark opens it


def frames_of(data: bytes) -> list[bytes]:
    """Read what Spark reads of a Python worker: lengths, and so many bytes."""
    found, stream = [], io.BytesIO(data)
    while head := stream.read(4):
        found.append(stream.read(struct.unpack("!i", head)[0]))
    return found


@pytest.mark.parametrize("size", [0, 1, BUFFER - 5, BUFFER - 4, BUFFER - 3, BUFFER, 3 * BUFFER])
def test_rows_pass_as_they_were_and_are_large_enough_for_spark_to_pass_them_on_at_once(size: int) -> None:
    blob, written = os.urandom(size), io.BytesIO()
    OutletRows(BUFFER).dump_stream([CarriedBlob(7, blob), None], written)
    key, row = frames_of(written.getvalue())
    assert struct.unpack("!q", key) == (7,)
    assert len(row) >= BUFFER
    assert len(row) == max(BUFFER, size + 4), "no row is longer than it has to be"
    passed = b"".join(struct.pack("!i", len(each)) + each for each in (b"", row, row)) + struct.pack("!i", -1) + b"next"
    stream = io.BytesIO(passed)
    assert [bytes(found) for found in InletRows().load_stream(stream)] == [blob, blob]
    assert stream.read() == b"next", "what follows the rows is for PySpark"


@pytest.mark.parametrize("data", [b"", b"\0\0", struct.pack("!i", 10) + b"short"])
def test_rows_that_end_too_soon_are_an_error(data: bytes) -> None:
    with pytest.raises(EOFError, match="Spark closed the connection"):
        list(InletRows().load_stream(io.BytesIO(data)))


def test_a_blob_has_left_when_nothing_more_waits() -> None:
    pipe = Pipe()
    pipe.spark.settimeout(30)

    def carried() -> Iterator[CarriedBlob | None]:
        yield CarriedBlob(0, b"one")
        yield None
        assert len(pipe.spark.recv(2 * BUFFER, socket.MSG_WAITALL)) == 2 * BUFFER
        raise SlotLostError(0, "as expected")

    with pytest.raises(SlotLostError, match="as expected"):
        OutletRows(2 * BUFFER - 16).dump_stream(carried(), pipe.stream)


@pytest.mark.parametrize("tcp", [False, True])
@pytest.mark.parametrize("serializer", [NoRows(), OutletRows(BUFFER)])
def test_a_task_that_spark_has_cancelled_ends_its_process_without_a_word(
    serializer: NoRows, tcp: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Exited(BaseException):
        pass

    def leave(code: int) -> None:
        raise Exited

    monkeypatch.setattr(os, "_exit", leave)

    def lost() -> Iterator[CarriedBlob | None]:
        raise SlotLostError(0, "gone")
        yield

    pipe = Pipe(tcp=tcp)
    with pytest.raises(SlotLostError):  # Spark is told while it listens
        serializer.dump_stream(lost(), pipe.stream)
    pipe.spark.close()
    with pytest.raises(Exited):
        serializer.dump_stream(lost(), pipe.stream)
