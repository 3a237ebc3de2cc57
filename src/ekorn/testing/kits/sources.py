"""The promises of a `Source`: what restores, rescaling, kills, new input and bad input must not change.

A kit reads the source as the runtime does, in this process. A test of a source defines a `SourceCase` and a subclass of
a kit with a fixture `case`:

    class TestNumbers(SourceKit):
        @pytest.fixture
        def case(self):
            return NumbersCase()

A case of a real service writes its input in `__init__`, once per test.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

import cloudpickle

from ekorn.functions.source_contract import Boundedness, Source, Split, SplitReader
from ekorn.testing.kits.kit import Kit, for_each, promise, raised, same_records

__all__ = ["FindsNewInput", "RefusesBadInput", "SourceCase", "SourceJob", "SourceKit"]

_PLAIN = (int, float, str, bytes, bool, type(None))


class SourceCase(ABC):
    """One source with its input. `SourceKit` needs `bounded` and `records`; other kits need more."""

    @abstractmethod
    def bounded(self) -> Source:
        """Return the source of the present input."""

    @property
    @abstractmethod
    def records(self) -> list[Any]:
        """The records of the present input, in any order."""

    def unbounded(self) -> Source:
        """Return the source that finds new input too."""
        raise AssertionError("a case of `FindsNewInput` has an unbounded source")

    def add_input(self) -> list[Any]:
        """Add input while an unbounded source reads; return its records."""
        raise AssertionError("a case of `FindsNewInput` adds input")

    def spoil(self) -> tuple[type[Exception], str]:
        """Damage the input; return the error that reading must raise and a pattern of its message."""
        raise AssertionError("a case of `RefusesBadInput` damages its input")


class SourceKit(Kit):
    """The promises of every source."""

    comparable: ClassVar[Callable[[Any], Any]] = staticmethod(repr)
    """Returns a hashable form of a record, by which records are compared."""
    step: ClassVar[int] = 1
    """How many records are read between two kills. Sources of slow services take more."""

    @for_each(batch=(1, 7, 4096), parallelism=(1, 3))
    def test_every_record_is_read_once(self, case: SourceCase, batch: int, parallelism: int) -> None:
        """Read a bounded input in batches of several sizes."""
        source = case.bounded()
        promise(source.boundedness is Boundedness.BOUNDED, f"boundedness is {source.boundedness}, not BOUNDED")
        self.compare(SourceJob(source, parallelism).read_all(batch), case.records, "after the last split")

    def test_splits_have_unique_stable_ids_and_hold_plain_data(self, case: SourceCase) -> None:
        """Discover the splits twice."""
        source = case.bounded()
        splits = source.discover_splits(3)
        ids = Counter(split.id for split in splits)
        promise(len(ids) == len(splits), f"several splits have the same id: {ids.most_common(1)}")
        promise(
            list(source.discover_splits(3)) == list(splits), "a second call of discover_splits returns other splits"
        )
        for split in splits:
            promise(_is_plain(split.what), f"split {split.id!r} holds {split.what!r}, which is not plain data")

    def test_positions_are_plain_data(self, case: SourceCase) -> None:
        """Look at the position of every split after every batch."""
        job = SourceJob(case.bounded(), 1)
        while not job.done:
            job.read(0, 2)
            for split_id, _, position, _ in job.snapshot():
                promise(_is_plain(position), f"split {split_id!r} is at {position!r}, which is not plain data")

    def test_a_source_travels_to_slots(self, case: SourceCase) -> None:
        """Pickle the source and read its copy."""
        source = pickle.loads(cloudpickle.dumps(case.bounded()))
        self.compare(SourceJob(source, 2).read_all(), case.records, "read by a copy")

    @for_each(parallelism=(1, 2, 4))
    def test_a_kill_after_every_step_loses_and_repeats_nothing(self, case: SourceCase, parallelism: int) -> None:
        """Read a step, checkpoint, read another step, lose it, and restore at another parallelism; until the end."""
        source = case.bounded()
        job, kept, steps = SourceJob(source, 2), [], 0
        while not job.done:
            for subtask in range(len(job.readers)):
                kept += job.read(subtask, type(self).step)
            saved = job.snapshot()
            job.read(steps, type(self).step)  # lost with the process
            steps += 1
            job = SourceJob(source, parallelism if steps % 2 else 2, saved)
            promise(steps < 10_000, "the source makes no progress between two kills")
        self.compare(kept, case.records, f"after {steps} kills")

    def test_a_restore_without_progress_starts_at_the_beginning(self, case: SourceCase) -> None:
        """Restore the first checkpoint at another parallelism."""
        source = case.bounded()
        restored = SourceJob(source, 3, SourceJob(source, 2).snapshot())
        self.compare(restored.read_all(), case.records, "after the restore")

    def compare(self, found: list[Any], wanted: list[Any], where: str) -> None:
        """Compare records, in any order."""
        form = type(self).comparable
        same_records(Counter(map(form, found)), Counter(map(form, wanted)), where)


class FindsNewInput(SourceKit):
    """The promises of a source that has an unbounded form too."""

    def test_an_unbounded_source_finds_new_input_and_keeps_its_place(self, case: SourceCase) -> None:
        """Add input between a checkpoint and its restore."""
        source = case.unbounded()
        promise(
            source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED,
            f"boundedness is {source.boundedness}, not CONTINUOUS_UNBOUNDED",
        )
        job = SourceJob(source, 2)
        self.compare(job.read_available(), case.records, "before the input grew")
        added = case.add_input()
        job = SourceJob(source, 3, job.snapshot())
        job.discover()
        self.compare(job.read_available(), added, "after the input grew")


class RefusesBadInput(Kit):
    """The promise of a source whose input can be damaged."""

    def test_bad_input_is_an_error_that_says_where(self, case: SourceCase) -> None:
        """Read damaged input."""
        error, says = case.spoil()
        raised(error, says, lambda: SourceJob(case.bounded(), 1).read_all())


class SourceJob:
    """The subtasks of a source at some parallelism, read as the runtime reads them.

    Args:
        source: The source.
        parallelism: How many subtasks share the splits.
        saved: A snapshot to restore; None starts anew.
    """

    def __init__(self, source: Source, parallelism: int, saved: list[tuple[Any, ...]] | None = None) -> None:
        self.source: Source = pickle.loads(cloudpickle.dumps(source))  # every slot has its own copy
        self.readers: list[list[tuple[Split, SplitReader]]] = [[] for _ in range(parallelism)]
        self.finished: list[Split] = []
        pairs: list[tuple[Split, Any, bool]]
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
        """Whether every split is read to its end."""
        return not any(self.readers)

    def read(self, subtask: int, max_records: int) -> list[Any]:
        """Read one batch from the first reader of a subtask, and move that reader to the back of the queue."""
        queue = self.readers[subtask % len(self.readers)]
        if not queue:
            return []
        split, reader = queue.pop(0)
        values = list(reader.read(max_records).values)
        promise(len(values) <= max_records, f"read({max_records}) returned {len(values)} records")
        if reader.finished:
            promise(not reader.read(max_records).values, f"split {split.id!r} has records after `finished`")
            reader.close()
            self.finished.append(split)
        else:
            queue.append((split, reader))
        return values

    def read_all(self, max_records: int = 100) -> list[Any]:
        """Read every split to its end."""
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
        """Close the readers."""
        for queue in self.readers:
            for _, reader in queue:
                reader.close()

    def snapshot(self) -> list[tuple[Any, ...]]:
        """Return the positions as a checkpoint restores them."""
        saved: list[tuple[Any, ...]] = [(s.id, s.what, r.position(), False) for queue in self.readers for s, r in queue]
        saved += [(s.id, s.what, None, True) for s in self.finished]
        restored: list[tuple[Any, ...]] = pickle.loads(pickle.dumps(saved))
        return restored


def _is_plain(value: Any) -> bool:
    if isinstance(value, _PLAIN):
        return True
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return isinstance(value, dict) and all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
