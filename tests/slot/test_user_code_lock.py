"""The mailbox hands the lock over to requests between two steps."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from ekorn.slot.user_code_lock import UserCodeLock
from tests.live_jobs import until


def test_a_request_gets_the_turn_although_the_mailbox_takes_it_again_and_again() -> None:
    lock, served, steps = UserCodeLock(), threading.Event(), 0

    def ask() -> None:
        with lock:
            served.set()

    lock.acquire_after_requests()
    asking = threading.Thread(target=ask)
    asking.start()
    while not served.is_set():
        lock.release()
        lock.acquire_after_requests()
        steps += 1
        assert steps < 1_000_000, "the request was never served"
    lock.release()
    asking.join()


def test_a_request_is_seen_as_long_as_it_waits() -> None:
    lock = UserCodeLock()
    with lock:
        assert not lock.has_waiting_requests
        asking = threading.Thread(target=lambda: lock.acquire(60) and lock.release())
        asking.start()
        until(lambda: lock.has_waiting_requests)
    asking.join()
    assert not lock.has_waiting_requests


def test_whoever_waits_too_long_does_without() -> None:
    lock = UserCodeLock()
    with lock:
        assert not lock.acquire(timeout_s=0.01)
    assert lock.acquire(timeout_s=0.01)
    lock.release()


def test_a_reader_is_let_in_between_two_steps_while_a_request_keeps_waiting() -> None:
    lock, read, requested = UserCodeLock(), threading.Event(), threading.Event()
    seen: list[bool] = []

    def look() -> None:
        def see() -> None:
            seen.append(requested.is_set())
            read.set()

        assert lock.at_pause(see, timeout_s=30)

    def ask() -> None:
        with lock:
            requested.set()

    with lock:
        threads = [threading.Thread(target=call) for call in (ask, look)]
        for thread in threads:
            thread.start()
        steps = 0
        while not read.is_set():
            lock.give_way()
            steps += 1
            assert steps < 10_000_000, "the reader was never let in"
        assert not requested.is_set(), "the request waits for the release of the lock"
    for thread in threads:
        thread.join(30)
    assert requested.is_set()
    assert seen == [False]


def test_a_reader_sees_no_half_of_a_step() -> None:
    lock, state, ended, torn = UserCodeLock(), [0, 0], threading.Event(), []

    def see() -> None:
        if state[0] != state[1]:
            torn.append(list(state))

    def look() -> None:
        while not ended.is_set():
            lock.at_pause(see, timeout_s=30)

    readers = [threading.Thread(target=look) for _ in range(3)]
    for reader in readers:
        reader.start()
    with lock:
        for number in range(300):
            state[0] = number
            threading.Event().wait(0)  # lets other threads run in the middle of the step
            state[1] = number
            lock.give_way()
    ended.set()
    for reader in readers:
        reader.join(30)
    assert not torn


def test_readers_that_come_again_and_again_do_not_stop_the_holder() -> None:
    lock, ended = UserCodeLock(), threading.Event()

    def look() -> None:
        while not ended.is_set():
            lock.at_pause(lambda: None, timeout_s=30)

    readers = [threading.Thread(target=look) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(200):
        lock.acquire_after_requests()
        lock.give_way()
        lock.release()
    ended.set()
    for reader in readers:
        reader.join(30)


def test_a_reader_that_waits_too_long_does_without_and_holds_nobody_up() -> None:
    lock, calls = UserCodeLock(), list[int]()
    with lock:
        assert not lock.at_pause(lambda: calls.append(1), timeout_s=0.01)
        lock.give_way()
    assert lock.at_pause(lambda: calls.append(2), timeout_s=0.01)
    assert calls == [2], "a reader that has given up is not called later"


def test_the_end_of_a_turn_calls_the_readers_that_wait() -> None:
    lock, called = UserCodeLock(), threading.Event()
    lock.acquire()
    reader = threading.Thread(target=lock.at_pause, args=(called.set, 30))
    reader.start()
    assert not called.wait(0.05)
    lock.release()
    assert called.wait(30)
    reader.join(30)


def test_the_holder_learns_whether_readers_may_come_soon() -> None:
    lock = UserCodeLock()
    with lock:
        assert not lock.give_way()
        with lock.expecting_readers():
            assert lock.give_way()
        assert not lock.give_way()


def test_a_reader_is_called_in_every_pause_and_told_when_the_turn_is_free() -> None:
    lock, told = UserCodeLock(), list[str]()
    with lock.expecting_readers(lambda: told.append("pause"), lambda: told.append("free")):
        lock.acquire_after_requests()
        lock.give_way()
        lock.release(resumes=True)
        lock.acquire_after_requests()
        lock.release()
    lock.acquire_after_requests()
    lock.give_way()
    lock.release()
    assert told == ["pause", "pause", "pause", "free"]


def test_a_reader_knows_whether_the_holder_of_the_turn_pauses() -> None:
    lock = UserCodeLock()
    with lock.expecting_readers():
        assert lock.pauses_since(0) is None, "nobody has the lock"
        with lock:
            assert lock.pauses_since(0) is None, "there was no pause yet"
            lock.give_way()
            assert lock.pauses_since(0) == 1
            assert lock.pauses_since(1) is None, "no pause since"
        assert lock.pauses_since(0) is None


def test_a_reader_whose_time_ends_while_it_is_answered_waits_for_the_answer() -> None:
    lock, began, go, called = UserCodeLock(), threading.Event(), threading.Event(), list[str]()

    class Handed(deque[Any]):
        """The waiting readers: the holder takes each at once, and the answer goes on when the reader gives up."""

        def append(self, visit: Any) -> None:
            super().append(visit)
            threading.Thread(target=lock.give_way, daemon=True).start()
            assert began.wait(60)

        def remove(self, visit: Any) -> None:
            go.set()
            super().remove(visit)

    def answer() -> None:
        began.set()
        assert go.wait(60)
        called.append("answered")

    lock._visits = Handed()
    lock.acquire()
    assert lock.at_pause(answer, 0.0)
    assert called == ["answered"]
    lock.release()
