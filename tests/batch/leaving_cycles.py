"""A task whose function leaves a megabyte of cyclic garbage for each record. It prints what becomes of the first."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator

from ekorn.batch.tasks.exits import CountExit
from ekorn.batch.tasks.record_operators import MapRecords
from ekorn.batch.tasks.stage_task import StageTask
from ekorn.batch.tasks.task_context import TaskJobInfo


class Cycle:
    def __init__(self) -> None:
        self.itself, self.data = self, bytearray(b"x") * (1 << 20)


FIRST: list[weakref.ref[Cycle]] = []


def leave_a_cycle(number: int) -> int:
    cycle = Cycle()
    if not FIRST:
        FIRST.append(weakref.ref(cycle))
    time.sleep(0.01)
    return number


def numbers() -> Iterator[int]:
    for number in range(800):  # no more megabytes than that, however it ends
        if FIRST and FIRST[0]() is None:
            print("collected")
            return
        yield number


def main() -> None:
    task = StageTask(TaskJobInfo("job", "job"), "splits", (MapRecords("map", leave_a_cycle),), CountExit(), 1)
    watches: list[threading.Thread] = []
    for _ in task(0, numbers()):
        watches = [each for each in threading.enumerate() if each.name == "garbage-watch"]
    for watch in watches:
        watch.join(30)
    print(len(watches), [each.name for each in threading.enumerate()])
