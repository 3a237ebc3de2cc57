"""Changes of the plan of a running job: what is on disk before, and after each way in which they may end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from ekorn.config import options
from ekorn.errors import CheckpointError, ConfigurationError, RescaleError
from ekorn.service.jobs import plan_changes
from ekorn.service.jobs.job_record import JobPlan, JobRecord
from ekorn.service.jobs.job_store import JobStore
from ekorn.service.jobs.job_table import JobTable
from ekorn.service.jobs.plan_changes import PlanChanges
from ekorn.service.jobs.slot_budget import SlotBudget
from ekorn.web.http_client import RefusedRequest, ServerGone

JOB = "1" * 32
PLAN = JobPlan("b" * 64 + "_next.py.zip", "next.py", (), {}, 2)


class Remote:
    """The driver of a job: what a test lets it do."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.does: Callable[[Any], Any] = lambda asked: "/saved"

    def _answer(self, *asked: Any) -> Future[str]:
        self.asked.append(asked)
        future: Future[str] = Future()
        try:
            future.set_result(self.does(asked))
        except RefusedRequest:
            raise
        except Exception as error:
            future.set_exception(error)
        return future

    def request_savepoint(self, directory: str | None, *, then: str) -> Future[str]:
        return self._answer("savepoint", directory, then)

    def request_rescale(self, parallelism: int, directory: str | None, *, most_slots: int) -> Future[str]:
        return self._answer("rescale", parallelism, directory, most_slots)


class Changes:
    def __init__(self, folder: str) -> None:
        self.store = JobStore(folder)
        self.store.save(JobRecord(JOB, "job", "a" * 64 + "_job.py.zip", "job.py", phase="STARTED", slots=1))
        self.table = JobTable(self.store)
        self.wake, self.closed, self.remote = threading.Event(), threading.Event(), Remote()
        self.changes = PlanChanges(self.table, self.store, SlotBudget(3), self.wake, self.closed)

    @property
    def record(self) -> JobRecord:
        (found,) = [each for each in self.store.load() if each.job_id == JOB]
        return found

    def save(self, **more: Any) -> None:
        self.table.save(replace(self.table[JOB], **more))

    def after_waking(self, act: Callable[[], None]) -> None:
        """Do what the thread of the service would once it is woken."""

        def wait() -> None:
            assert self.wake.wait(60)
            act()

        threading.Thread(target=wait, daemon=True).start()


@pytest.fixture
def changes(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Changes:
    made = Changes(str(tmp_path / "s"))
    monkeypatch.setattr(plan_changes, "RemoteJob", lambda client, job_id: made.remote)
    monkeypatch.setattr(plan_changes, "driver_client", lambda record: None)
    monkeypatch.setattr(plan_changes, "_LOOK_S", 0.005)
    return made


def test_a_switch_is_on_disk_before_the_job_stops_and_ends_when_it_runs_with_the_plan(changes: Changes) -> None:
    seen: list[JobPlan | None] = []
    changes.remote.does = lambda asked: seen.append(changes.record.then) or "/saved"

    def switched() -> None:
        changes.save(then=None, fallback=PLAN, program=PLAN.program, slots=PLAN.slots)
        changes.save(fallback=None)

    changes.after_waking(switched)
    assert changes.changes.switch(JOB, PLAN, "/dir") == "/saved"
    assert seen == [PLAN] and changes.remote.asked == [("savepoint", "/dir", "stop")]


def test_without_a_savepoint_directory_the_folder_of_the_job_is_used(changes: Changes) -> None:
    def refuse_first(asked: Any) -> str:
        if asked[1] is None:
            raise RefusedRequest(400, "the job has no directory for savepoints")
        return "/saved"

    changes.remote.does = refuse_first
    changes.after_waking(lambda: changes.save(then=None, program=PLAN.program, slots=PLAN.slots))
    assert changes.changes.switch(JOB, PLAN, None) == "/saved"
    own = str(changes.store.job_folder(JOB) / "savepoints")
    assert [asked[1] for asked in changes.remote.asked] == [None, own]


@pytest.mark.parametrize(("directory", "reason"), [("/dir", "no directory there"), (None, "the job is ending")])
def test_any_other_refusal_leaves_the_job_as_it_was(changes: Changes, directory: str | None, reason: str) -> None:
    def refuse(asked: Any) -> str:
        raise RefusedRequest(409, reason)

    changes.remote.does = refuse
    with pytest.raises(RefusedRequest, match=reason):
        changes.changes.switch(JOB, PLAN, directory)
    assert changes.record.then is None and len(changes.remote.asked) == 1


def test_a_job_that_could_not_stop_or_has_ended_meanwhile_keeps_its_plan(changes: Changes) -> None:
    def fail(asked: Any) -> str:
        raise CheckpointError("no space")

    changes.remote.does = fail
    with pytest.raises(CheckpointError, match="no space"):
        changes.changes.switch(JOB, PLAN, "/dir")
    assert changes.record.then is None

    def end(asked: Any) -> str:
        changes.save(phase="ENDED")
        raise CheckpointError("no space")

    changes.remote.does = end
    with pytest.raises(CheckpointError):
        changes.changes.switch(JOB, PLAN, "/dir")
    assert changes.record.then == PLAN, "the record of an end is not written over"


def gone(asked: Any) -> str:
    raise ServerGone("the driver has ended")


def test_a_driver_that_stopped_and_ended_before_it_was_asked_again_has_left_the_savepoint(changes: Changes) -> None:
    def end_soon(asked: Any) -> str:
        changes.save(then=None, program=PLAN.program, slots=PLAN.slots, settings={options.RESTORE_PATH.key: "/left"})
        return gone(asked)

    changes.remote.does = end_soon
    assert changes.changes.switch(JOB, PLAN, "/dir") == "/left"


def test_a_driver_that_ended_without_a_savepoint_is_gone(changes: Changes) -> None:
    def end(asked: Any) -> str:
        changes.save(phase="ENDED")
        return gone(asked)

    changes.remote.does = end
    with pytest.raises(ServerGone):
        changes.changes.switch(JOB, PLAN, "/dir")


def test_a_service_that_is_closed_waits_for_no_change(changes: Changes) -> None:
    changes.remote.does = gone
    changes.closed.set()
    with pytest.raises(ServerGone):
        changes.changes.switch(JOB, PLAN, "/dir")


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        ({"phase": "ENDED", "why": "it failed"}, f"job {JOB} has ended: it failed"),
        ({"then": None, "why": "it went back"}, f"job {JOB} was not changed: it went back"),
    ],
)
def test_a_change_that_did_not_come_about_is_told(changes: Changes, then: Any, reason: str) -> None:
    changes.after_waking(lambda: changes.save(**then))
    with pytest.raises(ConfigurationError, match=reason):
        changes.changes.switch(JOB, PLAN, "/dir")


def test_a_job_that_is_forgotten_meanwhile_has_ended(changes: Changes) -> None:
    changes.after_waking(lambda: changes.table.forget(JOB))
    with pytest.raises(ConfigurationError, match=f"job {JOB} has ended: it is no longer kept"):
        changes.changes.switch(JOB, PLAN, "/dir")


@pytest.mark.parametrize(
    ("record", "plan", "reason"),
    [
        ({"phase": "WAITING"}, PLAN, f"job {JOB} is not running"),
        ({"then": PLAN}, PLAN, f"job {JOB} is already being changed"),
        ({"fallback": PLAN}, PLAN, f"job {JOB} is already being changed"),
        ({}, replace(PLAN, slots=4), "the job would not fit: it needs 4 slots"),
    ],
)
def test_a_change_that_cannot_be_is_refused(changes: Changes, record: Any, plan: JobPlan, reason: str) -> None:
    changes.save(**record)
    for change in (changes.changes.switch, changes.changes.rescale):
        with pytest.raises(ConfigurationError, match=reason):
            change(JOB, plan, None)
        with pytest.raises(ConfigurationError, match="is not running"):
            change("f" * 32, plan, None)
    assert changes.remote.asked == []


def test_other_jobs_keep_their_slots(changes: Changes) -> None:
    other = JobRecord("2" * 32, "other", "a" * 64 + "_job.py.zip", "job.py", phase="STARTED", slots=2)
    changes.table.save(other)
    with pytest.raises(ConfigurationError, match="it needs 2 slots, but only 1 of 3 are free"):
        changes.changes.rescale(JOB, PLAN, None)
    changes.table.save(replace(other, phase="ENDED"))
    assert changes.changes.rescale(JOB, PLAN, None) == "/saved"


@pytest.mark.parametrize(("before", "after", "during"), [(1, 2, 2), (3, 2, 3)])
def test_while_a_job_is_rescaled_it_claims_the_slots_of_both_plans(
    changes: Changes, before: int, after: int, during: int
) -> None:
    changes.save(slots=before)
    seen: list[int] = []

    def look(asked: Any) -> str:
        seen.append(changes.record.slots)
        with pytest.raises(ConfigurationError, match="already being changed"):
            changes.changes.rescale(JOB, PLAN, None)
        return "chk-7"

    changes.remote.does = look
    assert changes.changes.rescale(JOB, replace(PLAN, slots=after), "/dir") == "chk-7"
    assert seen == [during] and changes.record.slots == after
    assert changes.remote.asked == [("rescale", after, "/dir", after)]
    assert changes.wake.is_set()


def test_a_rescale_that_fails_leaves_the_job_with_its_plan(changes: Changes) -> None:
    def fail(asked: Any) -> str:
        raise RescaleError("no slots")

    before, changes.remote.does = changes.record, fail
    with pytest.raises(RescaleError):
        changes.changes.rescale(JOB, PLAN, None)
    assert changes.record == before
    changes.remote.does = lambda asked: "chk-7"
    assert changes.changes.rescale(JOB, PLAN, None) == "chk-7"


def test_a_job_that_ends_while_it_is_rescaled_keeps_the_record_of_its_end(changes: Changes) -> None:
    changes.remote.does = lambda asked: changes.save(phase="ENDED", why="it is done") or "chk-7"
    changes.changes.rescale(JOB, PLAN, None)
    assert (changes.record.phase, changes.record.why) == ("ENDED", "it is done")
