"""The promises of a `MetricReporter`: every number arrives, calls return in time, and a failure passes.

A test of a reporter defines a `ReporterCase` and a subclass of a kit with a fixture `case`:

    class TestBoard(ReporterKit):
        @pytest.fixture
        def case(self):
            return BoardCase()
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ekorn.metrics.reporter import MetricReporter, Sample
from ekorn.testing.kits.kit import Kit, promise, same_records

__all__ = ["RecoversFromFailures", "ReporterCase", "ReporterKit"]

_JOB = {"host": "host-1", "job_id": "5f", "job_name": "orders"}
_ODD = {"host": "höst\n2", "job_id": "5f", "job_name": 'say "hi" \\ {a="b"}', "operator_name": "Map, Filter -> Sink"}


def _samples() -> list[Sample]:
    """Return numbers of any size, under names and variables with any characters; new objects at every call."""
    return [
        Sample("jobmanager.job", "numRestarts", dict(_JOB), 0.0),
        Sample("taskmanager.job.task", "numRecordsIn", {**_JOB, "subtask_index": "0"}, 1e15),
        Sample("taskmanager.job.task", "numRecordsIn", {**_JOB, "subtask_index": "1"}, 7.25),
        Sample("taskmanager.job.task", "currentInputWatermark", dict(_JOB), -(2.0**63)),
        Sample("taskmanager.job.task.operator", "shop.orders per-second", dict(_ODD), 1e-9),
    ]


class ReporterCase(ABC):
    """One reporter with a destination of its own."""

    @abstractmethod
    def reporter(self) -> MetricReporter:
        """Return the reporter."""

    @abstractmethod
    def received(self) -> list[float]:
        """Return the values that the destination got with the last report, in any order."""

    def fail(self) -> None:
        """Let the destination fail until `recover`."""
        raise AssertionError("a case of `RecoversFromFailures` has a destination that fails")

    def recover(self) -> None:
        """Let the destination take reports again."""
        raise AssertionError("a case of `RecoversFromFailures` has a destination that recovers")


class ReporterKit(Kit):
    """The promises of every reporter that sends what it is given."""

    comparable: ClassVar[Callable[[float], Any]] = staticmethod(float)
    """Returns a hashable form of a value, by which values are compared. A reporter for people may round."""
    limit_s: ClassVar[float] = 15.0
    """How many seconds a call may take: a job that has ended waits this long for its reporters."""

    def test_every_number_arrives(self, case: ReporterCase) -> None:
        """Report numbers of any size, with odd names and variables."""
        reporter = case.reporter()
        self.call("report()", lambda: reporter.report(_samples()))
        self.compare(case.received(), _samples())
        self.call("close()", reporter.close)

    def test_each_report_stands_for_itself(self, case: ReporterCase) -> None:
        """Report other numbers, as of a job that has lost a subtask."""
        reporter = case.reporter()
        self.call("report()", lambda: reporter.report(_samples()))
        self.call("report()", lambda: reporter.report(_samples()[2:]))
        self.compare(case.received(), _samples()[2:])
        self.call("close()", reporter.close)

    def test_a_report_without_numbers_is_a_report(self, case: ReporterCase) -> None:
        """Report nothing."""
        reporter = case.reporter()
        self.call("report([])", lambda: reporter.report([]))
        self.compare(case.received(), [])
        self.call("close()", reporter.close)

    def test_numbers_are_not_changed(self, case: ReporterCase) -> None:
        """Compare the samples with those before the report; other reporters get the same ones."""
        reporter = case.reporter()
        given = _samples()
        self.call("report()", lambda: reporter.report(given))
        promise(given == _samples(), "the reporter changed the samples")
        self.call("close()", reporter.close)

    def test_a_reporter_that_never_reported_is_closed(self, case: ReporterCase) -> None:
        """Close at once, as after a job that did not start."""
        self.call("close()", case.reporter().close)

    def compare(self, found: Sequence[float], wanted: Sequence[Sample]) -> None:
        """Compare the values that arrived, in any order."""
        form = type(self).comparable
        same_records(Counter(map(form, found)), Counter(form(s.value) for s in wanted), "in the last report")

    def call(self, what: str, step: Callable[[], Any]) -> None:
        """Call a step on a thread of its own, as the job does; raise what it raises.

        Raises:
            AssertionError: The step takes too long, or raises what is no `Exception`.
        """
        raised = self.outcome(what, step)
        if raised is not None:
            raise raised

    def outcome(self, what: str, step: Callable[[], Any]) -> Exception | None:
        """Call a step on a thread of its own, and return what it raises."""
        failed: list[BaseException] = []

        def run() -> None:
            try:
                step()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(type(self).limit_s)
        promise(not thread.is_alive(), f"{what} has not returned after {type(self).limit_s:g} s")
        if not failed:
            return None
        if not isinstance(failed[0], Exception):
            raise AssertionError(f"{what} raises {failed[0]!r}, which would end the thread of reporters")
        return failed[0]


class RecoversFromFailures(ReporterKit):
    """The promises of a reporter whose destination may fail: the job logs what `report` raises, and reports again."""

    def test_a_failure_is_an_error_in_time_and_the_next_report_arrives(self, case: ReporterCase) -> None:
        """Report while the destination fails, and when it has recovered."""
        reporter = case.reporter()
        self.call("report()", lambda: reporter.report(_samples()))
        case.fail()
        failure = self.outcome("report()", lambda: reporter.report(_samples()))
        promise(failure is not None, "report() raises nothing, although the destination fails")
        promise(str(failure), f"{type(failure).__name__} has no message for the log")
        case.recover()
        self.call("report()", lambda: reporter.report(_samples()))
        self.compare(case.received(), _samples())
        self.call("close()", reporter.close)

    def test_a_failing_destination_does_not_hold_up_the_end(self, case: ReporterCase) -> None:
        """Close while the destination fails. An error is fine: the job logs it."""
        reporter = case.reporter()
        self.call("report()", lambda: reporter.report(_samples()))
        case.fail()
        self.outcome("close()", reporter.close)
