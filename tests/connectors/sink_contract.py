"""The contract of all exactly-once sinks: what kills at every step, restores and rescaling must not change.

A test module of a sink defines a `SinkCase` and a subclass of `SinkContract` with a fixture `make_case` that returns a
new case, with a destination of its own, at every call:

    class TestFiles(SinkContract):
        @pytest.fixture
        def make_case(self, tmp_path):
            return lambda: FilesCase(tmp_path / uuid.uuid4().hex)

The contract drives the sink as the runtime does (`writing.py`), in this process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from ekorn import faults
from ekorn.functions.sink_contract import Sink
from tests.connectors.writing import SinkJob

# Two checkpoints, one of them completed only after more records were written, and one that is aborted.
_STORY = ("write", "write", "begin", "write", "complete", "write", "begin", "abort", "write", "begin", "complete")


class SinkCase(ABC):
    """One sink with a destination of its own."""

    @abstractmethod
    def sink(self) -> Sink[Any]:
        """Return the sink."""

    @abstractmethod
    def record(self, number: int) -> Any:
        """Return a record; records of different numbers differ."""

    @abstractmethod
    def visible(self) -> list[Any]:
        """Return the records that a reader of the destination sees, in any order."""

    def spoil(self) -> tuple[Any, type[Exception], str]:
        """Return a record that the sink refuses, the error, and a pattern of its message."""
        raise AssertionError("a case of `RefusesBadRecords` has a record that its sink refuses")


class SinkContract:
    """Tests of one sink; a subclass has a fixture `make_case`."""

    comparable: ClassVar[Callable[[Any], Any]] = staticmethod(repr)
    parallelisms: ClassVar[tuple[int, ...]] = (1, 3)
    # Fault points inside the sink (`ekorn.faults`); the contract kills it there too.
    fault_points: ClassVar[tuple[str, ...]] = ()

    def check(self, case: SinkCase, job: SinkJob) -> None:
        compared = type(self).comparable
        assert Counter(map(compared, case.visible())) == Counter(map(compared, job.written))

    def play(self, job: SinkJob, case: SinkCase, steps: tuple[str, ...]) -> None:
        for step in steps:
            match step:
                case "write":
                    number = len(job.written)
                    job.write(number, case.record(job.last_id * 100 + number))
                case "begin":
                    job.begin_checkpoint()
                case "complete":
                    job.complete_checkpoint()
                case "abort":
                    job.abort_checkpoint()

    def test_all_records_are_visible_at_the_end(self, make_case: Callable[[], SinkCase]) -> None:
        case = make_case()
        job = SinkJob(case.sink(), 2)
        self.play(job, case, _STORY)
        job.finish()
        assert len(job.written) == 5
        self.check(case, job)

    def test_nothing_is_visible_before_its_checkpoint_is_complete(self, make_case: Callable[[], SinkCase]) -> None:
        case = make_case()
        job = SinkJob(case.sink(), 2)
        self.play(job, case, ("write", "write", "begin"))
        assert case.visible() == []

    @pytest.mark.parametrize("killed_after", range(len(_STORY) + 1))
    def test_a_kill_after_every_step_loses_and_repeats_nothing(
        self, make_case: Callable[[], SinkCase], killed_after: int
    ) -> None:
        for parallelism in type(self).parallelisms:
            case = make_case()
            job = SinkJob(case.sink(), 2)
            self.play(job, case, _STORY[:killed_after])
            job.crash(parallelism)
            self.play(job, case, _STORY)
            job.finish()
            self.check(case, job)

    @pytest.mark.parametrize("notified", [0, 1])
    def test_a_kill_between_the_commits_of_subtasks_loses_and_repeats_nothing(
        self, make_case: Callable[[], SinkCase], notified: int
    ) -> None:
        case = make_case()
        job = SinkJob(case.sink(), 2)
        self.play(job, case, ("write", "write", "write", "begin"))
        job.complete_checkpoint(notified=notified)
        job.crash(3, dies_after=1)
        self.play(job, case, ("write",))
        job.finish()
        self.check(case, job)

    def test_an_orderly_end_discards_what_no_checkpoint_covers(self, make_case: Callable[[], SinkCase]) -> None:
        case = make_case()
        job = SinkJob(case.sink(), 2)
        self.play(job, case, ("write", "begin", "complete", "write", "write"))
        job.crash(2, orderly=True)
        job.finish()
        assert len(job.written) == 1
        self.check(case, job)

    def test_a_checkpoint_is_restored_again_and_again(self, make_case: Callable[[], SinkCase]) -> None:
        case = make_case()
        job = SinkJob(case.sink(), 2)
        self.play(job, case, ("write", "write", "begin", "complete"))
        for parallelism in (3, 1, 2):
            job.crash(parallelism)
        job.finish()
        self.check(case, job)

    def test_a_kill_at_every_fault_point_loses_and_repeats_nothing(
        self, make_case: Callable[[], SinkCase], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for point in type(self).fault_points:
            met = 0
            for count in range(1, 100):
                case = make_case()
                faults.reset_counts()
                monkeypatch.setenv("EKORN_FAULT", f"{point}:*:{count}:error")
                job = SinkJob(case.sink(), 2)
                try:
                    self.play(job, case, _STORY)
                    job.finish()
                except OSError as error:
                    assert "was set" in str(error)
                    met += 1
                    monkeypatch.delenv("EKORN_FAULT")
                    job.crash(3)
                    self.play(job, case, _STORY)
                    job.finish()
                    self.check(case, job)
                else:
                    monkeypatch.delenv("EKORN_FAULT")
                    break
            assert met, f"the sink never passes the point {point!r}"


class RefusesBadRecords:
    """The contract of a sink that does not take every record; a subclass has a fixture `make_case`."""

    def test_a_record_that_cannot_be_written_is_an_error_that_says_why(self, make_case: Callable[[], SinkCase]) -> None:
        case = make_case()
        record, error, says = case.spoil()
        job = SinkJob(case.sink(), 1)
        with pytest.raises(error, match=says):
            job.write(0, record)
            job.checkpoint()
