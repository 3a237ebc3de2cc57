"""The mailbox gives its turn to whoever asks for it between two steps."""

from __future__ import annotations

import threading

from tamias.slot.turn import Turn


def test_a_request_gets_the_turn_although_the_mailbox_takes_it_again_and_again() -> None:
    turn, served, steps = Turn(), threading.Event(), 0

    def ask() -> None:
        with turn:
            served.set()

    turn.acquire_after_requests()
    asking = threading.Thread(target=ask)
    asking.start()
    while not served.is_set():
        turn.release()
        turn.acquire_after_requests()
        steps += 1
        assert steps < 1_000_000, "the request was never served"
    turn.release()
    asking.join()


def test_whoever_waits_too_long_does_without() -> None:
    turn = Turn()
    with turn:
        assert not turn.acquire(timeout_s=0.01)
    assert turn.acquire(timeout_s=0.01)
    turn.release()
