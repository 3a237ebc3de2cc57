"""A job of timers alone that is run for hundreds of steps against a set: far longer than the steps Hypothesis draws.

Registers, deletes and fires timers of keys and of windows, takes checkpoints and savepoints, and restores them on
another backend at another parallelism. Timers that fire register and delete others.
"""

import itertools
import random
from typing import Any

from ekorn.keygroups import key_group, key_group_range, subtask_of
from ekorn.state.snapshots import OperatorRestore
from ekorn.storage.memory import MemoryFiles
from tests.state.backends import GROUPS, cramped, heap, rocksdb, timers_on_heap
from tests.state.keyed_machine import Target

STEPS = ("register",) * 6 + ("delete",) * 3 + ("fire",) * 3 + ("checkpoint", "savepoint", "restore", "compare")


class TimerWalk:
    """Timers are (key, window or None, time) in the model."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.store = MemoryFiles()
        self.ids = itertools.count(1)
        self.saved: Any = None  # what a restore needs, and the model
        self.model: set[Any] = set()
        self.begin()

    def begin(self, restored: Any = None) -> None:
        self.parallelism = self.chance.randint(1, 4)
        make = self.chance.choice([heap, rocksdb, cramped, cramped, cramped, timers_on_heap])
        self.groups = [key_group_range(GROUPS, self.parallelism, index) for index in range(self.parallelism)]
        self.backends = [make(groups) for groups in self.groups]
        if restored is not None:
            for backend, groups in zip(self.backends, self.groups, strict=True):
                backend.restore(restored, self.store, groups)
        self.of_keys = [backend.timers("_timers/event", windowed=False) for backend in self.backends]
        self.of_windows = [backend.timers("_window/timers/event", windowed=True) for backend in self.backends]

    def close(self) -> None:
        for backend in self.backends:
            backend.close()

    def step(self) -> None:
        getattr(self, self.chance.choice(STEPS))()
        nexts = [queue.next_ms() for queue in (*self.of_keys, *self.of_windows)]
        found = min((time for time in nexts if time is not None), default=None)
        assert found == min((time for *_, time in self.model), default=None)

    def some(self) -> list[Any]:
        count, first = self.chance.choice([1, 5, 40]), self.chance.randint(0, 12)
        window, step = self.chance.choice([None, (0, 10), ("left", -3)]), self.chance.choice([0, 1, 5])
        key = self.chance.choice([0, 50])
        return [(key + number, window, (first + number * step) % 13) for number in range(count)]

    def queue(self, key: int, window: Any) -> tuple[Any, Any]:
        index = subtask_of(key_group(key, GROUPS), GROUPS, self.parallelism)
        return (self.of_keys[index], key) if window is None else (self.of_windows[index], (key, window))

    def register(self) -> None:
        for key, window, time in self.some():
            queue, entry = self.queue(key, window)
            queue.add(entry, time)
            self.model.add((key, window, time))

    def delete(self) -> None:
        for key, window, time in self.some():
            queue, entry = self.queue(key, window)
            queue.remove(entry, time)
            self.model.discard((key, window, time))

    def fire(self) -> None:
        limit, found = self.chance.randint(0, 12), []
        for queue in (*self.of_keys, *self.of_windows):
            fired: list[Any] = []

            def call(entry: Any, time: int, queue: Any = queue, fired: list[Any] = fired) -> None:
                fired.append((*(entry if queue in self.of_windows else (entry, None)), time))
                if time % 4 == 0:
                    queue.add(entry, time + 3)
                if time % 3 == 0:
                    queue.remove(entry, time + 1)

            queue.fire(limit, call, relief=itertools.repeat(True))
            assert [time for *_, time in fired] == sorted(time for *_, time in fired)
            found += fired
        assert sorted(map(repr, found)) == sorted(map(repr, self.due(limit)))

    def due(self, limit: int) -> list[Any]:
        """Fire the timers of the model."""
        fired = []
        while due := [timer for timer in self.model if timer[2] <= limit]:
            key, window, time = min(due, key=lambda timer: timer[2])
            fired.append((key, window, time))
            self.model.discard((key, window, time))
            if time % 4 == 0:
                self.model.add((key, window, time + 3))
            if time % 3 == 0:
                self.model.discard((key, window, time + 1))
        return fired

    def capture(self, take: str) -> None:
        checkpoint_id, parts = next(self.ids), []
        for backend, groups in zip(self.backends, self.groups, strict=True):
            captured = getattr(backend, take)(checkpoint_id)
            captured.key_groups = groups
            parts.append(captured.write(Target(self.store)))
        if take != "snapshot" or self.chance.random() < 0.8:  # the other checkpoints are aborted
            self.saved = checkpoint_id, tuple(parts), self.backends[0].infos(), set(self.model)

    def checkpoint(self) -> None:
        before = self.saved
        self.capture("snapshot")
        if self.saved is not before:
            for backend in self.backends:
                backend.snapshot_completed(self.saved[0])

    def savepoint(self) -> None:
        self.capture(self.chance.choice(["native_snapshot", "full_snapshot"]))

    def restore(self) -> None:
        if self.saved is not None:
            self.close()
            checkpoint_id, parts, infos, model = self.saved
            self.model = set(model)
            self.begin(OperatorRestore("operator", parts, (), infos, checkpoint_id, GROUPS))

    def compare(self) -> None:
        found = [(key, None, time) for queue in self.of_keys for key, time in queue.timers()]
        found += [(*entry, time) for queue in self.of_windows for entry, time in queue.timers()]
        assert sorted(map(repr, found)) == sorted(map(repr, self.model))
