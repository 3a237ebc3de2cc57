"""The connection of a subtask that runs continuously: bounded both ways, and the mailbox never waits for it."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Iterator

import pytest

from ekorn.links.link import Link
from ekorn.slot.continuous.transport import Transport
from ekorn.slot.user_code_lock import UserCodeLock
from ekorn.slot_protocol.task_messages import Carries
from ekorn.subtask.wire.frames import Blob
from tests.live_jobs import until

QUARTER = 1 << 18  # of what may wait in one direction


def blob(number: int, size: int = 10) -> Blob:
    return Blob(1, 2, 3, number, b"x" * size)


def transport_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "transport"}


class Between:
    """A transport, its task on the other side, and what was told to the slot."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.task = Link(theirs)
        self.task.settimeout(30)
        self.woken: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.lost = 0
        self.reasons: list[Exception | None] = []
        self.given: list[int] = []
        others = transport_threads()
        self.transport = Transport(lambda: self.woken.put(None), self._count_lost)
        self.link = Link(ours)
        assert self.transport.attach(self.link, Carries.BOTH)
        (self.sender,) = transport_threads() - others

    def _count_lost(self, carried: Carries, error: Exception | None) -> None:
        self.lost += 1
        self.reasons.append(error)

    def receive_all(self) -> threading.Thread:
        thread = threading.Thread(
            target=self.transport.receive_all,
            args=(self.link, lambda blob: self.given.append(blob.sequence)),
            daemon=True,
        )
        thread.start()
        return thread

    def sent(self) -> Blob:
        return Blob.decode(self.task.receive())


@pytest.fixture
def between() -> Iterator[Between]:
    made = Between()
    yield made
    made.transport.abort()


def test_blobs_leave_in_their_order_and_the_end_follows_them(between: Between) -> None:
    for number in range(5):
        between.transport.send(blob(number))
    between.transport.finish()
    assert [between.sent() for _ in range(5)] == [blob(number) for number in range(5)]
    assert between.task.receive() == b""
    until(lambda: between.transport.messages == 6)
    assert between.lost == 0


def test_what_waits_is_bounded_and_room_in_the_queue_wakes_the_mailbox(between: Between) -> None:
    assert not between.transport.is_full
    count = 0
    while not between.transport.is_full:  # the task takes nothing: at last a socket's buffer and the queue are full
        between.transport.send(blob(count, QUARTER))
        count += 1
        assert count < 50
    assert count >= 4, "a megabyte may wait"
    assert between.woken.empty()
    for number in range(count):
        assert between.sent().sequence == number
    between.woken.get(timeout=30)
    assert between.woken.empty(), "once, when there is room again"
    assert not between.transport.is_full


def test_blobs_that_arrive_are_given_to_the_subtask_which_is_woken(between: Between) -> None:
    between.receive_all()
    for number in range(3):
        between.task.send(*blob(number).encode())
        between.woken.get(timeout=30)
    assert between.given == [0, 1, 2]
    assert between.transport.messages == 3


def test_no_more_is_read_than_the_subtask_takes(between: Between) -> None:
    between.receive_all()
    sending = threading.Thread(
        target=lambda: [between.task.send(*blob(n, QUARTER).encode()) for n in range(9)], daemon=True
    )
    sending.start()
    for _ in range(4):
        between.woken.get(timeout=30)
    with pytest.raises(queue.Empty):
        between.woken.get(timeout=0.2)
    assert between.given == [0, 1, 2, 3]
    for number in range(4, 9):
        between.transport.taken(blob(0, QUARTER).size_bytes)
        between.woken.get(timeout=30)
        assert between.given[-1] == number
    sending.join(30)


def test_a_task_that_ends_in_the_middle_is_a_loss_that_is_told_once(between: Between) -> None:
    reading = between.receive_all()
    between.task.close()
    reading.join(30)
    assert not reading.is_alive()
    assert between.lost == 1
    for number in range(3):
        between.transport.send(blob(number, QUARTER))  # the sender finds the connection broken, too
    between.sender.join(30)
    assert not between.sender.is_alive()
    assert between.lost == 1


@pytest.mark.parametrize("message", [b"B\0\0", b"X" * 100])
def test_a_message_that_is_no_blob_is_a_loss_with_a_reason(between: Between, message: bytes) -> None:
    reading = between.receive_all()
    between.task.send(message)
    reading.join(30)
    assert not reading.is_alive() and between.lost == 1 and between.given == []
    assert "cannot be decoded: it begins with" in str(between.reasons[0])


def test_a_connection_that_is_broken_off_is_no_loss(between: Between) -> None:
    reading = between.receive_all()
    while not between.transport.is_full:
        between.transport.send(blob(0, QUARTER))
    between.transport.abort()
    reading.join(30)
    assert not reading.is_alive()
    assert between.lost == 0
    with pytest.raises((EOFError, OSError)):
        while True:
            between.task.receive()


def test_a_subtask_that_ends_while_its_task_waits_to_give_more_lets_it_go(between: Between) -> None:
    reading = between.receive_all()
    for number in range(4):
        between.task.send(*blob(number, QUARTER).encode())
        between.woken.get(timeout=30)
    between.transport.finish()  # the reader waits for the subtask to take something, which it never will
    assert between.task.receive() == b""
    between.task.send(b"")
    reading.join(30)
    assert not reading.is_alive()
    assert between.lost == 0


# ------------------------------------------------------------------------------------------- a task for each direction


class TwoTasks:
    """A transport whose input and output are carried by two tasks."""

    def __init__(self) -> None:
        self.lost: list[tuple[Carries, Exception | None]] = []
        self.transport = Transport(lambda: None, lambda carried, error: self.lost.append((carried, error)))
        self.given: list[int] = []
        self.tasks: dict[Carries, Link] = {}
        self.reading: list[threading.Thread] = []
        for carries in (Carries.INPUT, Carries.OUTPUT):
            ours, theirs = (Link(each) for each in socket.socketpair())
            theirs.settimeout(30)
            self.tasks[carries] = theirs
            assert self.transport.attach(ours, carries)
            arguments = ours, lambda blob: self.given.append(blob.sequence)
            self.reading.append(threading.Thread(target=self.transport.receive_all, args=arguments, daemon=True))
            self.reading[-1].start()

    def join(self) -> None:
        for thread in self.reading:
            thread.join(30)
            assert not thread.is_alive()


@pytest.fixture
def two() -> Iterator[TwoTasks]:
    made = TwoTasks()
    yield made
    made.transport.abort()


def test_one_task_brings_blobs_and_the_other_takes_them(two: TwoTasks) -> None:
    two.tasks[Carries.INPUT].send(*blob(3).encode())
    until(lambda: two.given == [3])
    two.transport.send(blob(4))
    assert Blob.decode(two.tasks[Carries.OUTPUT].receive()) == blob(4)
    assert not two.tasks[Carries.INPUT].wait(0.0)


def test_both_tasks_hear_that_the_subtask_has_finished(two: TwoTasks) -> None:
    two.transport.send(blob(0))
    two.transport.finish()
    assert Blob.decode(two.tasks[Carries.OUTPUT].receive()) == blob(0)
    for task in two.tasks.values():
        assert task.receive() == b""
        task.close()
    two.join()
    assert two.lost == []


@pytest.mark.parametrize("carries", [Carries.INPUT, Carries.OUTPUT])
def test_the_loss_of_either_task_is_told_at_once(two: TwoTasks, carries: Carries) -> None:
    two.tasks[carries].close()
    until(lambda: two.lost == [(carries, None)])
    other = Carries.OUTPUT if carries is Carries.INPUT else Carries.INPUT
    with pytest.raises(EOFError):  # else it would bring more than the subtask takes
        two.tasks[other].receive()
    two.join()
    assert two.lost == [(carries, None)], "one loss, told once"


def test_both_connections_break_with_the_attempt(two: TwoTasks) -> None:
    two.transport.abort()
    for task in two.tasks.values():
        with pytest.raises(EOFError):
            task.receive()
    two.join()
    assert two.lost == []


@pytest.mark.parametrize("carries", list(Carries))
def test_a_second_task_for_the_same_direction_is_refused(two: TwoTasks, carries: Carries) -> None:
    ours, theirs = socket.socketpair()
    assert not two.transport.attach(Link(ours), carries)
    ours.close()
    theirs.close()


def test_a_task_that_calls_after_the_end_is_refused() -> None:
    transport = Transport(lambda: None, lambda carried, error: None)
    transport.abort()
    ours, theirs = socket.socketpair()
    assert not transport.attach(Link(ours), Carries.BOTH)
    ours.close()
    theirs.close()


# ---------------------------------------------------------------------------------------------------------- the lock


def test_one_thread_at_a_time_has_the_turn() -> None:
    lock = UserCodeLock()
    with lock:
        assert not lock.acquire(timeout_s=0.01)
    assert lock.acquire(timeout_s=0.01)
    assert not lock.acquire(timeout_s=0.01)
    lock.release()


def test_a_request_comes_before_the_next_step_of_the_mailbox() -> None:
    lock, order = UserCodeLock(), []
    lock.acquire_after_requests()
    asking = threading.Event()

    def request() -> None:
        asking.set()
        with lock:
            order.append("request")

    def step() -> None:
        lock.acquire_after_requests()
        order.append("step")
        lock.release()

    requesting = threading.Thread(target=request, daemon=True)
    requesting.start()
    assert asking.wait(30)
    until(lambda: not lock.acquire(timeout_s=0.01))
    stepping = threading.Thread(target=step, daemon=True)
    stepping.start()
    stepping.join(0.1)
    assert order == []
    lock.release()
    requesting.join(30)
    stepping.join(30)
    assert order == ["request", "step"]


def test_a_request_that_gave_up_does_not_hold_up_the_mailbox() -> None:
    lock = UserCodeLock()
    lock.acquire_after_requests()
    assert not lock.acquire(timeout_s=0.01)
    lock.release()
    stepping = threading.Thread(target=lock.acquire_after_requests, daemon=True)
    stepping.start()
    stepping.join(30)
    assert not stepping.is_alive()


def test_small_blobs_that_the_connection_takes_in_part_stay_whole_and_in_order(between: Between) -> None:
    count = 200  # of ten kilobytes: much more than a socket's buffer takes, and nobody reads yet
    for number in range(count):
        between.transport.send(blob(number, 10_000))
    between.transport.finish()
    assert [between.sent() for _ in range(count)] == [blob(number, 10_000) for number in range(count)]
    assert between.task.receive() == b""
    until(lambda: between.transport.messages == count + 1)


def test_a_small_blob_of_an_idle_subtask_has_left_when_send_returns(between: Between) -> None:
    between.transport.send(blob(0))
    assert between.task.wait(0.0), "it waits for no thread"
    assert between.sent() == blob(0)
