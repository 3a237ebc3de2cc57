"""The life of a service's jobs, step by step: what the service's thread does, without a thread and without drivers."""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ekorn.clock import ManualClock
from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.settings.memory_settings import job_memory
from ekorn.config.settings.service_settings import ServiceSettings
from ekorn.config.settings.web_settings import WebSettings
from ekorn.driver.display.job_progress import JobProgress
from ekorn.errors import ConfigurationError
from ekorn.functions.results.job_status import JobStatus
from ekorn.service.cluster.takeover import MOST_LOST, SHORT_LIFE_MS
from ekorn.service.jobs import job_service
from ekorn.service.jobs.job_process import Started
from ekorn.service.jobs.job_record import JobPlan, JobRecord
from ekorn.service.jobs.job_service import WENT_BACK, JobService
from ekorn.service.jobs.job_submission import Submission, resumes, submitted_record
from ekorn.service.jobs.plan_trial import TrialLimits, Verdict, judge
from ekorn.service.jobs.slot_budget import SlotBudget

MB = 1 << 20


class Service:
    """A service whose drivers are numbers of processes."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        settings = ServiceSettings(
            folder=str(folder), web=WebSettings(port=0), slots=3, memory_bytes=100, jobs_kept=2, programs_kept=1
        )
        self.clock = ManualClock(1_000_000)
        self.service = JobService(settings, self.clock)
        self.store = self.service.store
        self.living: set[int] = set()
        self.settings_given: Mapping[str, str] = {}
        self.ended: list[int] = []
        self.found: Started | None = None
        self.fails: Exception | None = None
        pids = itertools.count(101)

        def start(store: Any, record: JobRecord, script: Path) -> Started:
            self.settings_given = record.settings
            if self.fails is not None:
                raise self.fails
            pid = next(pids)
            self.living.add(pid)
            return Started(pid, pid * 10)

        def end(pid: int, started: int, **_: Any) -> None:
            assert started == pid * 10
            self.ended.append(pid)
            self.living.discard(pid)

        monkeypatch.setattr(job_service, "start_driver", start)
        monkeypatch.setattr(job_service, "found_driver", lambda store, job_id: self.found)
        monkeypatch.setattr(job_service, "is_alive", lambda pid, started: pid in self.living and started == pid * 10)
        monkeypatch.setattr(job_service, "end_process", end)
        monkeypatch.setattr(self.store, "unpack_program", lambda record, most: folder / "script.py")
        self.program = self.upload("the program")

    def upload(self, text: str) -> str:
        file = self.store.folder / "file"
        file.write_text(text)
        return self.service.add_program(file, hashlib.sha256(text.encode()).hexdigest(), "job.py")

    def submit(self, slots: int = 1, **more: Any) -> JobRecord:
        self.clock.advance(1)
        return self.service.submit(Submission(self.program, parallelism=slots, **more))

    def step(self) -> None:
        """Do what the thread of the service does in a round."""
        self.service._note_ends()
        self.service._start_waiting()
        self.service._forget_old()

    def now(self, record: JobRecord) -> JobRecord:
        found = self.service.find(record.job_id)
        assert found is not None
        return found

    def answers(self, record: JobRecord, state: str | None = None, **more: Any) -> None:
        """Let the driver of a job write its last answers, and end."""
        found = {**more}
        if state is not None:
            shown = {"jid": record.job_id, "name": "shown", "state": state}
            found |= {"/jobs/overview": {"jobs": [shown]}, f"/jobs/{record.job_id}": {"state": state}}
        self.store.archive(record.job_id).write_text(json.dumps(found))
        self.living.discard(self.now(record).pid)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    return Service(tmp_path / "s", monkeypatch)


# -------------------------------------------------------------------------------------------------------- submission


def test_a_submitted_job_waits_and_then_has_a_driver(service: Service) -> None:
    record = service.submit(2, arguments=("a",), settings={"k": "v"}, submission_id="mine")
    assert (record.phase, record.slots, record.arguments, record.submitted_ms) == ("WAITING", 2, ("a",), 1_000_001)
    assert record.settings[options.PARALLELISM.key] == record.settings[options.MOST_SLOTS.key] == "2"
    assert record.settings[options.JOB_ID.key] == record.job_id and record.settings["k"] == "v"
    assert (record.name, record.script, record.why) == ("job", "job.py", "it is about to start")
    service.clock.advance(50)
    service.step()
    started = service.now(record)
    assert (started.phase, started.pid, started.pid_started) == ("STARTED", 101, 1_010)
    assert (started.started_ms, started.why) == (service.clock.now_ms(), "its driver is running")
    assert started.settings[options.WEB_SOCKET.key] == started.socket
    assert started.settings[options.EXECUTIONS.key] == "many"
    assert service.store.load() == [started]


@pytest.mark.parametrize(
    ("claimed", "memory", "each_mb"),
    [(0, 3000 * MB, 1000), (500 * MB, 3000 * MB, 500), (0, None, None)],
    ids=["an equal share", "what it claims", "unbounded"],
)
def test_the_slots_of_a_job_may_use_what_they_claim_or_an_equal_share(
    service: Service, claimed: int, memory: int | None, each_mb: int | None
) -> None:
    service.service.budget = SlotBudget(3, memory)
    record = service.submit(2, slot_memory_bytes=claimed)
    service.step()
    bound = job_memory(Configuration.from_dict(dict(service.settings_given)), {}).other.process_bytes
    assert (bound and round(bound / MB)) == each_mb
    assert options.JOB_ID.key in service.settings_given
    kept = service.now(record).settings
    assert (options.MEMORY_PROCESS_SIZE.key in kept) == bool(claimed), "another service has other shares"


def test_a_job_with_a_wrong_value_is_refused(service: Service) -> None:
    for more, reason in (
        ({"program": "x" * 200}, f"there is no program '{'x' * 100}': upload it first"),
        ({"parallelism": 0}, "the parallelism is 0; it must be at least 1"),
        ({"parallelism": None, "settings": {options.PARALLELISM.key: "two"}}, "the parallelism is 'two'"),
        ({"slot_memory_bytes": -1}, "the memory of a slot is -1 bytes"),
        ({"parallelism": 4}, "the job is refused: it needs 4 slots"),
        ({"slot_memory_bytes": 1 << 40}, f"the job is refused: it claims {1 << 40} bytes"),
        ({"job_id": "x"}, "x"),
    ):
        wanted = Submission(**{"program": service.program, "parallelism": 1, **more})  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match=reason):
            service.service.submit(wanted)
    assert service.service.jobs() == []


def test_a_request_that_is_sent_again_is_one_job(service: Service) -> None:
    first = service.submit(submission_id="mine")
    assert service.submit(submission_id="mine") == first
    assert service.submit(submission_id="").job_id != service.submit(submission_id="").job_id


def test_a_job_that_has_ended_can_be_submitted_again_under_its_id_and_is_the_latest_then(service: Service) -> None:
    first, second = service.submit(job_id="1" * 32), service.submit(job_id="2" * 32)
    with pytest.raises(ConfigurationError, match=f"there is already a job {first.job_id}, and it has not ended"):
        service.submit(job_id=first.job_id)
    assert service.service.withdraw(first.job_id)
    again = service.submit(job_id=first.job_id)
    assert [each.job_id for each in service.service.jobs()] == [second.job_id, again.job_id]
    assert again.phase == "WAITING"


def test_there_is_a_most_of_waiting_jobs(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_service, "_MOST_WAITING", 2)
    service.submit()
    service.submit()
    with pytest.raises(ConfigurationError, match="the job is refused: 2 jobs are already waiting"):
        service.submit()
    service.step()
    service.submit()


RESUME = {options.RESUME.key: "true"}


def test_a_client_that_resumes_gets_the_id_of_the_last_job_of_its_program(service: Service) -> None:
    record = service.submit(arguments=("a",))
    with pytest.raises(ConfigurationError, match=f"'job.py' cannot be resumed.*job {record.job_id}"):
        service.submit(arguments=("a",), settings=RESUME)
    assert service.submit(arguments=("b",), settings=RESUME).job_id != record.job_id
    service.step()
    service.answers(record, "FAILED")
    service.step()
    assert service.submit(arguments=("a",), settings=RESUME).job_id == record.job_id


@pytest.mark.parametrize("status", ["FINISHED", "CANCELED"])
def test_a_job_that_is_over_is_not_resumed(service: Service, status: str) -> None:
    record = service.submit()
    service.step()
    service.answers(record, status)
    service.step()
    assert service.submit(settings=RESUME).job_id != record.job_id


def test_a_request_to_resume_that_is_sent_again_is_one_job(service: Service) -> None:
    first = service.submit(settings=RESUME, submission_id="mine")
    assert service.submit(settings=RESUME, submission_id="mine").job_id == first.job_id


def test_a_job_that_is_named_is_not_looked_for() -> None:
    assert resumes(Submission("p", settings=RESUME))
    assert not resumes(Submission("p", settings=RESUME, job_id="1" * 32))
    assert not resumes(Submission("p", settings={**RESUME, options.JOB_ID.key: "1" * 32}))
    assert not resumes(Submission("p"))


def test_the_id_of_a_job_may_be_a_setting() -> None:
    given = Submission("p" * 64 + "_a.py.zip", settings={options.JOB_ID.key: "1" * 32, options.PARALLELISM.key: "3"})
    found = submitted_record(given, 7)
    assert (found.job_id, found.slots, found.submitted_ms, found.script) == ("1" * 32, 3, 7, "a.py")
    assert submitted_record(replace(given, job_id="2" * 32), 7).job_id == "2" * 32
    assert submitted_record(Submission("p" * 64 + "_a.py.zip"), 7).slots == 1


# -------------------------------------------------------------------------------------------------------------- slots


def test_jobs_start_in_their_order_and_a_small_one_overtakes_nobody(service: Service) -> None:
    first, large, small = service.submit(2), service.submit(2), service.submit(1)
    service.step()
    assert [service.now(each).phase for each in (first, large, small)] == ["STARTED", "WAITING", "WAITING"]
    assert service.now(large).why == "it waits: it needs 2 slots, but only 1 of 3 are free"
    assert service.now(small).why == (
        "it waits: jobs start in the order in which they were submitted, and job 'job' waits before it"
    )
    service.answers(first, "FINISHED")
    service.step()
    assert [service.now(each).phase for each in (first, large, small)] == ["ENDED", "STARTED", "STARTED"]


def test_a_waiting_job_can_be_withdrawn_and_no_other(service: Service) -> None:
    first, second = service.submit(3), service.submit(3)
    service.step()
    assert not service.service.withdraw(first.job_id) and not service.service.withdraw("f" * 32)
    assert service.service.withdraw(second.job_id)
    withdrawn = service.now(second)
    assert (withdrawn.phase, withdrawn.status, withdrawn.ended_ms) == ("ENDED", "CANCELED", service.clock.now_ms())
    assert withdrawn.why == "it was cancelled before it started"


def test_a_driver_that_cannot_be_started_fails_its_job_with_the_reason(service: Service) -> None:
    record = service.submit()
    service.fails = OSError("no processes")
    service.step()
    failed = service.now(record)
    assert (failed.phase, failed.status) == ("ENDED", "FAILED")
    assert failed.why == "its driver could not be started: no processes"


def test_a_driver_that_a_killed_service_left_is_taken_up(service: Service) -> None:
    record = service.submit()
    service.found = Started(77, 770)
    service.living.add(77)
    service.step()
    assert service.now(record).pid == 77


def test_a_socket_with_a_long_path_is_in_the_runtime_folder(service: Service, runtime_dir: Path) -> None:
    own = service.store.job_folder("1" * 32) / "rest"
    bound = len(str(own).encode())
    for most, path in ((bound, str(own)), (bound - 1, str(runtime_dir / f"{'1' * 32}.rest"))):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(job_service, "_LONGEST_SOCKET", most)
            assert service.service._socket_of("1" * 32, "") == path


# --------------------------------------------------------------------------------------------------------- the end


def end_of(service: Service, *, cancel: bool = False, **more: Any) -> JobRecord:
    record = service.submit(**more)
    service.step()
    if cancel:
        service.service.note_cancelled(record.job_id)
    return record


@pytest.mark.parametrize("state", ["FINISHED", "FAILED", "CANCELED"])
def test_a_job_ends_as_its_driver_says(service: Service, state: str) -> None:
    record = end_of(service)
    service.clock.advance(500)
    service.answers(record, state)
    service.step()
    found = service.now(record)
    assert (found.phase, found.status, found.why) == ("ENDED", state, "its driver has ended")
    assert found.ended_ms == service.clock.now_ms()


@pytest.mark.parametrize(("code", "status"), [(0, "FINISHED"), (3, "FAILED"), (None, "FAILED")])
def test_a_program_without_a_job_ends_with_its_exit_code(service: Service, code: int | None, status: str) -> None:
    record = end_of(service)
    service.answers(record, None, **({"other": 1} if code is None else {"exit code": code}))
    service.step()
    found = service.now(record)
    shown = 1 if code is None else code
    assert (found.status, found.why) == (
        status,
        f"the program ended with exit code {shown} and started no job; see its log",
    )


def test_a_driver_that_was_lost_is_replaced_from_the_last_checkpoint(service: Service) -> None:
    record = end_of(service)
    for lost in range(1, MOST_LOST + 1):
        service.living.clear()
        service.service._note_ends()
        waiting = service.now(record)
        assert (waiting.phase, waiting.pid, waiting.lost_drivers) == ("WAITING", 0, lost)
        assert waiting.why.startswith("it continues from its last checkpoint: its driver ended without a report")
        assert waiting.settings[options.ONLY_CONTINUE.key] == "true"
        service.step()
    service.living.clear()
    service.step()
    assert service.now(record).status == "FAILED"


def test_drivers_that_lived_long_are_replaced_again_and_again(service: Service) -> None:
    record = end_of(service)
    for _ in range(2 * MOST_LOST):
        service.clock.advance(SHORT_LIFE_MS)
        service.living.clear()
        service.step()
        assert service.now(record).phase == "STARTED" and service.now(record).lost_drivers == 1


def test_a_lost_driver_of_a_job_that_never_ran_is_not_replaced_for_ever(service: Service) -> None:
    record = end_of(service)
    service.living.clear()
    service.step()
    service.answers(record, "FAILED")
    service.step()
    found = service.now(record)
    assert found.why == "its driver was lost, and the next one could not continue; see its log"
    assert found.status == "FAILED"


def test_a_cancelled_job_is_not_started_again(service: Service) -> None:
    record = end_of(service, cancel=True)
    service.living.clear()
    service.step()
    found = service.now(record)
    assert (found.phase, found.status) == ("ENDED", "CANCELED")
    assert found.why == "it was cancelled, and its driver ended without a report"


def test_a_driver_is_ended_and_its_job_with_it(service: Service) -> None:
    record = end_of(service)
    service.service.end_driver(record.job_id)
    assert service.ended == [101] and service.now(record).cancelled
    service.step()
    service.service.end_driver(record.job_id)
    assert service.ended == [101]


def test_a_service_that_stops_leading_kills_its_drivers(service: Service) -> None:
    end_of(service)
    service.submit(3)
    service.service.close_and_end_drivers(0.0)
    assert service.ended == [101]


def test_a_service_that_stops_leading_waits_for_the_step_under_way(service: Service) -> None:
    end_of(service)
    began, go_on, done = threading.Event(), threading.Event(), threading.Event()

    class Asked(set[int]):
        def __contains__(self, pid: object) -> bool:
            began.set()
            assert go_on.wait(60)
            done.set()
            return True

    service.living = Asked(service.living)
    service.service.start()
    assert began.wait(60)
    threading.Timer(0.2, go_on.set).start()
    service.service.close_and_end_drivers(60.0)
    assert done.is_set()


# ----------------------------------------------------------------------------------------------------- other plans

THEN = JobPlan("b" * 64 + "_next.py.zip", "next.py", ("n",), {"own": "1"}, 2)
SAVED = {"latest": {"savepoint": {"checkpoint_type": "SYNC_SAVEPOINT", "external_path": "/saved"}}}


def stopped(service: Service, saved: Any = SAVED, **more: Any) -> JobRecord:
    """Let a job stop with a savepoint on its way to another plan."""
    record = end_of(service, settings={"k": "v"})
    table = service.service._jobs
    table.save(replace(table[record.job_id], then=THEN, **more))
    service.answers(record, "FINISHED", **{f"/jobs/{record.job_id}/checkpoints": saved})
    return record


def test_a_job_that_stopped_for_another_plan_waits_to_continue_with_it(service: Service) -> None:
    record = stopped(service)
    service.service._note_ends()
    found = service.now(record)
    assert (found.phase, found.program, found.slots, found.then) == ("WAITING", THEN.program, 2, None)
    assert found.settings == {"own": "1", options.RESTORE_PATH.key: "/saved"}
    assert found.fallback is not None and found.fallback.program == service.program
    assert found.fallback.settings[options.RESTORE_PATH.key] == "/saved" and found.fallback.settings["k"] == "v"
    assert found.why == "it continues from its savepoint"


@pytest.mark.parametrize(
    "saved",
    [{}, {"latest": {}}, {"latest": {"savepoint": None}}, {"latest": {"savepoint": {"checkpoint_type": "SAVEPOINT"}}}],
)
def test_a_job_that_ended_without_a_savepoint_does_not_change(service: Service, saved: Any) -> None:
    record = stopped(service, saved)
    service.step()
    assert service.now(record).phase == "ENDED"


def on_trial(service: Service, **more: Any) -> JobRecord:
    record = end_of(service)
    table = service.service._jobs
    back = JobPlan(service.program, "job.py", ("back",), {"k": "w"}, 1)
    table.save(replace(table[record.job_id], fallback=back, **more))
    return record


def test_a_new_plan_that_fails_before_a_checkpoint_gives_way_to_the_one_before(service: Service) -> None:
    record = on_trial(service)
    service.answers(record, "FAILED", **{f"/jobs/{record.job_id}/checkpoints": {"counts": {"completed": 0}}})
    service.service._note_ends()
    found = service.now(record)
    assert (found.phase, found.arguments, found.fallback) == ("WAITING", ("back",), None)
    assert found.why == f"{WENT_BACK}: its driver has ended"
    service.service._start_waiting()
    assert service.now(record).why.startswith(WENT_BACK), "people see it as long as the driver runs"


@pytest.mark.parametrize(("state", "completed"), [("FAILED", 1), ("FINISHED", 0), ("CANCELED", 0)])
def test_a_new_plan_that_proved_itself_or_was_cancelled_ends_as_it_is(
    service: Service, state: str, completed: int
) -> None:
    record = on_trial(service)
    counts = {"counts": {"completed": completed}}
    service.answers(record, state, **{f"/jobs/{record.job_id}/checkpoints": counts})
    service.step()
    assert (service.now(record).phase, service.now(record).status) == ("ENDED", state)


def test_a_new_plan_whose_driver_was_killed_may_have_proved_itself_unseen(service: Service) -> None:
    record = on_trial(service, trial_ms=5)
    service.living.clear()
    service.service._note_ends()
    found = service.now(record)
    assert (found.phase, found.arguments) == ("WAITING", ()) and found.fallback is not None


@pytest.mark.parametrize(
    ("verdict", "kept", "ended"),
    [(Verdict.KEEP, False, []), (Verdict.RESTARTS, True, [101]), (Verdict.UNDECIDED, True, [])],
)
def test_a_job_on_trial_is_judged_while_it_runs(
    service: Service, monkeypatch: pytest.MonkeyPatch, verdict: Verdict, kept: bool, ended: list[int]
) -> None:
    record = on_trial(service)
    judged: list[str] = []
    monkeypatch.setattr(service.service._trials, "verdict", lambda of: judged.append(of.job_id) or (verdict, "why not"))
    monkeypatch.setattr(service.service.overviews, "of", lambda of: None)
    service.service._note_ends()
    assert judged == [], "it does not run yet"
    monkeypatch.setattr(service.service.overviews, "of", lambda of: {"state": "RUNNING"})
    service.service._note_ends()
    found = service.now(record)
    assert (found.fallback is not None) is kept and service.ended == ended
    assert found.going_back == ("why not" if ended else "")
    assert found.trial_ms == (service.clock.now_ms() if verdict is Verdict.UNDECIDED else 0)
    if verdict is Verdict.UNDECIDED:
        service.clock.advance(1_000)
        service.service._note_ends()
        assert service.now(record).trial_ms == found.trial_ms, "the first time counts"


def test_a_cancelled_job_on_trial_is_left_alone(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    record = on_trial(service, trial_ms=5, cancelled=True)
    monkeypatch.setattr(service.service._trials, "verdict", lambda of: (Verdict.RESTARTS, "why"))
    service.service._note_ends()
    assert service.ended == [] and service.now(record).going_back == ""


def test_a_plan_that_went_back_continues_with_the_one_before(service: Service) -> None:
    record = on_trial(service, going_back="it restarted 3 times")
    service.answers(record, "CANCELED")
    service.service._note_ends()
    found = service.now(record)
    assert (found.phase, found.why) == ("WAITING", f"{WENT_BACK}: it restarted 3 times")


def test_a_new_plan_that_cannot_be_started_gives_way(service: Service) -> None:
    record = stopped(service)
    service.fails = ConfigurationError("no such script")
    service.step()
    found = service.now(record)
    assert (found.phase, found.program, found.fallback) == ("WAITING", service.program, None)
    assert found.why == f"{WENT_BACK}: its driver could not be started: no such script"


LIMITS = TrialLimits(restarts=3, time_ms=1_000)


@pytest.mark.parametrize(
    ("completed", "restarts", "status", "ran_ms", "verdict"),
    [
        (1, 9, JobStatus.RUNNING, 9_999, Verdict.KEEP),
        (0, 9, JobStatus.FINISHED, 9_999, Verdict.KEEP),
        (0, 3, JobStatus.RUNNING, 0, Verdict.RESTARTS),
        (0, 2, JobStatus.RUNNING, 1_000, Verdict.TOO_LATE),
        (0, 2, JobStatus.RUNNING, 999, Verdict.UNDECIDED),
    ],
)
def test_a_plan_is_judged_by_its_checkpoints_restarts_and_time(completed, restarts, status, ran_ms, verdict):
    progress = JobProgress(status=status, checkpoints_completed=completed, restarts=restarts)
    assert judge(progress, ran_ms, LIMITS) is verdict


# ------------------------------------------------------------------------------------------------------- forgetting


def test_the_oldest_ended_jobs_and_their_programs_are_forgotten(service: Service) -> None:
    records = []
    for number in range(4):
        service.program = service.upload(f"program {number}")
        records.append(service.submit())
        service.service.withdraw(records[-1].job_id)
    running = service.submit()
    service.step()
    left = {each.job_id for each in service.service.jobs()}
    assert left == {records[2].job_id, records[3].job_id, running.job_id}
    assert not service.store.job_folder(records[0].job_id).exists()
    kept = {each.id for each in service.store.programs()}
    assert {records[2].program, records[3].program} <= kept and len(kept) <= 4


def test_a_round_that_fails_is_logged_and_the_next_one_goes_on(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rounds: list[int] = []

    def fail() -> None:
        rounds.append(1)
        if len(rounds) == 2:
            service.service._closed.set()
        raise OSError("the disk is full")

    monkeypatch.setattr(service.service, "_note_ends", fail)
    service.service._wake.set()
    monkeypatch.setattr(job_service, "_LOOK_S", 0.001)
    service.service._watch()
    assert len(rounds) == 2 and caplog.text.count("the service could not check its jobs") == 2
