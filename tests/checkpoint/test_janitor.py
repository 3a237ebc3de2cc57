"""The janitor runs every task in order, outlives a task that fails, and leaves no thread behind."""

from __future__ import annotations

import threading
from functools import partial

from ekorn.checkpoint.janitor import Janitor
from tests.live_jobs import until


def janitors() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "checkpoint-janitor"}


def test_tasks_run_in_their_order_whatever_fails_among_them() -> None:
    janitor = Janitor("the test's directory")
    done: list[int] = []
    for number in range(20):
        janitor.add(partial(done.append, number) if number % 5 else partial(done.remove, -1))
    janitor.wait()
    assert done == [number for number in range(20) if number % 5]


def test_the_thread_ends_with_the_last_task_and_a_later_task_runs_all_the_same() -> None:
    janitor, before = Janitor("the test's directory"), janitors()
    done: list[int] = []
    for number in range(3):
        janitor.add(partial(done.append, number))
        janitor.wait()
        until(lambda: janitors() <= before)
    assert done == [0, 1, 2]
