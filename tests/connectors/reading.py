"""Reads a source through its contract as the runtime does: assigns splits to subtasks, keeps and restores positions."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

from ekorn.functions.source_contract import Source, Split, SplitReader


class SourceJob:
    """The subtasks of a source at some parallelism."""

    def __init__(self, source: Source, parallelism: int, saved: list[tuple[Any, ...]] | None = None) -> None:
        self.source = pickle.loads(_dumps(source))  # every slot has its own copy
        self.readers: list[list[tuple[Split, SplitReader]]] = [[] for _ in range(parallelism)]
        self.finished: list[Split] = []
        if saved is None:
            pairs = [(split, None, False) for split in self.source.discover_splits(parallelism)]
        else:
            pairs = [(Split(i, what), position, done) for i, what, position, done in sorted(saved, key=lambda s: s[0])]
        for number, (split, position, done) in enumerate(pairs):
            if done:
                self.finished.append(split)
            else:
                reader = self.source.create_reader(split, position)
                self.readers[number % parallelism].append((split, reader))

    @property
    def done(self) -> bool:
        return not any(self.readers)

    def read(self, subtask: int, max_records: int) -> list[Any]:
        """Read one batch from the first reader of a subtask, and move that reader to the back of the queue."""
        queue = self.readers[subtask % len(self.readers)]
        if not queue:
            return []
        split, reader = queue.pop(0)
        values = reader.read(max_records).values
        assert len(values) <= max_records
        if reader.finished:
            assert reader.read(max_records).values == []
            reader.close()
            self.finished.append(split)
        else:
            queue.append((split, reader))
        return values

    def read_all(self, max_records: int = 100) -> list[Any]:
        records: list[Any] = []
        while not self.done:
            for subtask in range(len(self.readers)):
                records += self.read(subtask, max_records)
        return records

    def discover(self) -> None:
        """Look for new splits, as an unbounded source does at its interval."""
        known = {split.id for queue in self.readers for split, _ in queue} | {split.id for split in self.finished}
        new = [split for split in self.source.discover_splits(len(self.readers)) if split.id not in known]
        for number, split in enumerate(new):
            self.readers[number % len(self.readers)].append((split, self.source.create_reader(split, None)))

    def read_available(self, max_records: int = 100) -> list[Any]:
        """Read until no reader has a record now."""
        records: list[Any] = []
        while True:
            found = [
                value
                for subtask, queue in enumerate(self.readers)
                for _ in list(queue)
                for value in self.read(subtask, max_records)
            ]
            if not found:
                return records
            records += found

    def close(self) -> None:
        for queue in self.readers:
            for _, reader in queue:
                reader.close()

    def snapshot(self) -> list[tuple[Any, ...]]:
        """Return the positions as a checkpoint restores them."""
        saved = [(s.id, s.what, r.position(), False) for queue in self.readers for s, r in queue]
        saved += [(s.id, s.what, None, True) for s in self.finished]
        return pickle.loads(pickle.dumps(saved))


def read_with_crashes(source: Source, steps: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Read a bounded source to its end, through steps: ('read', subtask, count), ('checkpoint',), ('crash', p)."""
    job = SourceJob(source, 2)
    kept: list[Any] = []  # records up to the last checkpoint
    since: list[Any] = []
    saved: list[tuple[Any, ...]] | None = None
    for step in steps:
        match step:
            case ("read", subtask, count):
                since += job.read(subtask, count)
            case ("checkpoint",):
                saved = job.snapshot()
                kept, since = kept + since, []
            case ("crash", parallelism):
                job, since = SourceJob(source, parallelism, saved), []
    return kept + since + job.read_all()


def _dumps(value: Any) -> bytes:
    import cloudpickle

    return cloudpickle.dumps(value)
