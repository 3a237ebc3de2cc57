"""The contract of all sources: what restores, rescaling, kills, new input and bad input must not change.

A test module of a source defines a `SourceCase` and a subclass of `SourceContract` with a fixture `case`:

    class TestNumbers(SourceContract):
        @pytest.fixture
        def case(self):
            return NumbersCase()

The contract drives the source as the runtime does (`reading.py`), in this process. A case of a real service writes its
input in `__init__`, once per test.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

import cloudpickle
import pytest

from ekorn.functions.source_contract import Boundedness, Source
from tests.connectors.reading import SourceJob

_PLAIN = (int, float, str, bytes, bool, type(None))


class SourceCase(ABC):
    """One source with its input. `SourceContract` needs `bounded` and `records`, other contracts need more."""

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


class SourceContract:
    """Tests of one source; a subclass has a fixture `case`."""

    # How a record is compared: a function that gives it a hashable form.
    comparable: ClassVar[Callable[[Any], Any]] = staticmethod(repr)
    # How many records are read between two kills. Sources of slow services take more.
    step: ClassVar[int] = 1

    def counted(self, records: list[Any]) -> Counter[Any]:
        return Counter(map(type(self).comparable, records))

    @pytest.mark.parametrize("batch", [1, 7, 4096])
    @pytest.mark.parametrize("parallelism", [1, 3])
    def test_every_record_is_read_once(self, case: SourceCase, batch: int, parallelism: int) -> None:
        source = case.bounded()
        assert source.boundedness is Boundedness.BOUNDED
        assert self.counted(SourceJob(source, parallelism).read_all(batch)) == self.counted(case.records)

    def test_splits_have_unique_stable_ids_and_hold_plain_data(self, case: SourceCase) -> None:
        source = case.bounded()
        splits = source.discover_splits(3)
        assert len({split.id for split in splits}) == len(splits)
        assert list(source.discover_splits(3)) == list(splits)
        assert all(_is_plain(split.what) for split in splits)

    def test_positions_are_plain_data(self, case: SourceCase) -> None:
        job = SourceJob(case.bounded(), 1)
        while not job.done:
            job.read(0, 2)
            assert all(_is_plain(position) for _, _, position, _ in job.snapshot())

    def test_a_source_travels_to_slots(self, case: SourceCase) -> None:
        source = pickle.loads(cloudpickle.dumps(case.bounded()))
        assert self.counted(SourceJob(source, 2).read_all()) == self.counted(case.records)

    @pytest.mark.parametrize("parallelism", [1, 2, 4])
    def test_a_kill_after_every_step_loses_and_repeats_nothing(self, case: SourceCase, parallelism: int) -> None:
        """Read a step, checkpoint, read another step, lose it, and restore at another parallelism; until the end."""
        source, wanted = case.bounded(), self.counted(case.records)
        job, kept, steps = SourceJob(source, 2), [], 0
        while not job.done:
            for subtask in range(len(job.readers)):
                kept += job.read(subtask, type(self).step)
            saved = job.snapshot()
            job.read(steps, type(self).step)  # lost with the process
            steps += 1
            job = SourceJob(source, parallelism if steps % 2 else 2, saved)
            assert steps < 10_000, "the source makes no progress between two kills"
        assert self.counted(kept) == wanted

    def test_a_restore_without_progress_starts_at_the_beginning(self, case: SourceCase) -> None:
        source = case.bounded()
        restored = SourceJob(source, 3, SourceJob(source, 2).snapshot())
        assert self.counted(restored.read_all()) == self.counted(case.records)


class FindsNewInput(SourceContract):
    """The contract of a source that has an unbounded form too."""

    def test_an_unbounded_source_finds_new_input_and_keeps_its_place(self, case: SourceCase) -> None:
        source = case.unbounded()
        assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
        job = SourceJob(source, 2)
        seen = job.read_available()
        assert self.counted(seen) == self.counted(case.records)
        added = case.add_input()
        job = SourceJob(source, 3, job.snapshot())
        job.discover()
        assert self.counted(job.read_available()) == self.counted(added)


class RefusesBadInput:
    """The contract of a source whose input can be damaged; a subclass has a fixture `case`."""

    def test_bad_input_is_an_error_that_says_where(self, case: SourceCase) -> None:
        error, says = case.spoil()
        with pytest.raises(error, match=says):
            SourceJob(case.bounded(), 1).read_all()


def _is_plain(value: Any) -> bool:
    if isinstance(value, _PLAIN):
        return True
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return isinstance(value, dict) and all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
