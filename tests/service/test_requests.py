"""What the service answers about its jobs and programs, without drivers: a fake driver answers what a test says."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.config import options
from ekorn.service.api.change_api import ChangeApi
from ekorn.service.api.job_api import JobApi
from ekorn.service.api.program_api import ProgramApi, _submission
from ekorn.service.jobs.job_record import JobRecord
from ekorn.service.jobs.job_store import JobStore
from ekorn.web.http_client import Answered, ServerGone
from ekorn.web.http_messages import FileAnswer, HttpError, Request, Response
from tests.live_jobs import until

JOB = "0" * 31 + "7"
PROGRAM = "a" * 64 + "_job.py.zip"
VERTEX = {"parallelism": {"lowerBound": 1, "upperBound": 2}}


class Service:
    """A service with one job, whose driver answers from a script."""

    def __init__(self, folder: str) -> None:
        self.store = JobStore(folder)
        self.record = JobRecord(JOB, "job", PROGRAM, "job.py", ("x",), phase="STARTED", slots=2)
        self.store.save(self.record)
        self.answers: dict[str, Answered] = {}
        self.asked: list[tuple[str, str, Any]] = []
        self.noted: list[tuple[str, str]] = []
        self.withdrawn = False
        self.changes = SimpleNamespace(rescale=self._rescale, switch=self._rescale)
        self.changed: list[Any] = []
        self.settings = SimpleNamespace(web=SimpleNamespace(address="http://here:1"))
        self.overviews = SimpleNamespace(of=lambda record, job_id: None)

    def _rescale(self, job_id: str, plan: Any, directory: str | None) -> str:
        self.changed.append((job_id, plan, directory))
        return "chk-1"

    def owner_of(self, wanted: str) -> JobRecord | None:
        return self.record if wanted in (JOB, "second") else None

    def jobs(self) -> list[JobRecord]:
        return [self.record]

    def driver(self, record: JobRecord) -> Service:
        return self

    def ask(self, method: str, path: str, body: bytes | None) -> Answered:
        self.asked.append((method, path, body))
        if path.partition("?")[0] not in self.answers:
            raise ServerGone("the driver has ended")
        return self.answers[path.partition("?")[0]]

    def withdraw(self, job_id: str) -> bool:
        return self.withdrawn

    def note_cancelled(self, job_id: str) -> None:
        self.noted.append(("cancelled", job_id))

    def end_driver(self, job_id: str) -> None:
        self.noted.append(("ended", job_id))

    def submit(self, wanted: Any) -> JobRecord:
        self.noted.append(("submitted", wanted))
        return replace(self.record, job_id="f" * 32)

    def is_in(self, phase: Any, **more: Any) -> None:
        self.record = replace(self.record, phase=phase, **more)


@pytest.fixture
def service(tmp_path) -> Service:
    return Service(str(tmp_path / "service"))


@pytest.fixture
def jobs(service: Service) -> JobApi:
    return JobApi(service)  # type: ignore[arg-type]


@pytest.fixture
def changes(service: Service, jobs: JobApi) -> ChangeApi:
    return ChangeApi(service, jobs)  # type: ignore[arg-type]


@pytest.fixture
def programs(service: Service) -> ProgramApi:
    return ProgramApi(service)  # type: ignore[arg-type]


def request(
    method: str = "GET", path: str = f"/jobs/{JOB}", body: Any = None, query: Any = None, **names: str
) -> Request:
    data = b"" if body is None else json.dumps(body).encode()
    return Request(method, path, {"jobid": JOB, **names}, query or {}, data)


def refused(handler: Any, asked: Request) -> tuple[int, str]:
    with pytest.raises(HttpError) as found:
        handler(asked)
    return found.value.status, found.value.reason


def answer(content: Any = None, status: int = 200, content_type: str = "application/json") -> Answered:
    return Answered(status, content_type, json.dumps(content).encode())


# ----------------------------------------------------------------------------------------------------- about one job


def test_a_request_is_passed_on_with_its_query_and_its_body(service, jobs):
    service.answers[f"/jobs/{JOB}/a%20b"] = answer({"x": 1}, 202, "text/own")
    found = jobs.pass_on(request("PATCH", f"/jobs/{JOB}/a b", {"y": 2}, {"mode": ["a", "b&"]}))
    assert (found.content, found.status, found.content_type) == (b'{"x": 1}', 202, "text/own")
    assert service.asked == [("PATCH", f"/jobs/{JOB}/a%20b?mode=a&mode=b%26", b'{"y": 2}')]
    service.answers[f"/jobs/{JOB}"] = answer({}, content_type="")
    assert jobs.pass_on(request()).content_type == "application/json"
    assert service.asked[1:] == [("GET", f"/jobs/{JOB}", None)]


def test_a_driver_that_does_not_answer_is_a_410_with_its_job(jobs):
    found = jobs.pass_on(request())
    assert found.status == 410
    assert found.content["errors"] == [f"the driver of job {JOB} does not answer: it is starting, or has just ended"]


def test_a_job_that_waits_has_no_answers(service, jobs):
    service.is_in("WAITING", why="it needs slots")
    assert refused(jobs.pass_on, request()) == (409, f"job {JOB} has not started: it needs slots")


def ended(service: Service, answers: Any, status: str = "FINISHED") -> None:
    service.is_in("ENDED", status=status, why="it is done")
    service.store.archive(JOB).write_text(json.dumps(answers))


def test_a_job_that_has_ended_is_answered_as_its_driver_did_last(service, jobs):
    ended(service, {f"/jobs/{JOB}": {"state": "FINISHED"}})
    assert jobs.pass_on(request()).content == {"state": "FINISHED"}
    assert service.asked == []
    assert refused(jobs.pass_on, request(path=f"/jobs/{JOB}/else")) == (
        404,
        f"job {JOB} has ended (FINISHED: it is done), and the service no longer keeps this information about it",
    )
    assert refused(jobs.pass_on, request("POST")) == (409, f"job {JOB} has ended (FINISHED)")


def test_a_driver_that_has_just_written_its_last_answers_is_answered_from_them(service, jobs):
    service.store.archive(JOB).write_text(json.dumps({f"/jobs/{JOB}": {"state": "FINISHED"}}))
    assert jobs.pass_on(request()).content == {"state": "FINISHED"}
    assert refused(jobs.pass_on, request("POST")) == (409, f"job {JOB} has ended (its driver has just ended)")
    service.answers[f"/jobs/{JOB}"] = answer({"state": "RUNNING"})
    assert jobs.pass_on(request()).content == b'{"state": "RUNNING"}', "the driver runs again"


def test_an_unknown_job_is_named(jobs):
    assert refused(jobs.pass_on, request(jobid="x" * 200)) == (404, f"there is no job '{'x' * 80}'")


def test_the_failures_of_a_job_are_none_while_nobody_knows_of_any(service, jobs):
    nothing = {"exceptionHistory": {"entries": [], "truncated": False}}
    service.is_in("WAITING")
    assert jobs.exceptions(JOB) == nothing
    service.is_in("STARTED")
    service.answers[f"/jobs/{JOB}/exceptions"] = answer({"exceptionHistory": {"entries": [1], "truncated": True}})
    assert jobs.exceptions(JOB) == {"exceptionHistory": {"entries": [1], "truncated": True}}


def test_the_log_of_a_job_is_sent_from_a_byte_on(service, jobs):
    service.is_in("STARTED", why="soon")
    assert refused(jobs.job_log, request()) == (409, f"job {JOB} has no log yet: soon")
    service.store.log(JOB).write_text("0123456789")
    for offset, first in ((None, 0), ("4", 4), ("10", 10), ("11", 10)):
        found = jobs.job_log(request(query={} if offset is None else {"offset": [offset]}))
        assert found.content == FileAnswer(service.store.log(JOB), first)
        assert found.content_type == "text/plain; charset=UTF-8"


@pytest.mark.parametrize("status", [404, 410])
def test_the_log_in_the_folder_of_the_service_stands_for_a_driver_that_knows_no_job(service, jobs, status):
    path = f"/jobs/{JOB}/jobmanager/logs"
    service.answers[path] = answer({}, status)
    assert json.loads(jobs.driver_logs(request(path=path)).body()) == {"logs": []}
    service.store.log(JOB).write_text("said")
    assert [each["name"] for each in json.loads(jobs.driver_logs(request(path=path)).body())["logs"]] == ["driver.log"]
    found = jobs.driver_log(request(path=f"{path}/driver.log", name="driver.log"))
    assert found.content.path == service.store.log(JOB)
    service.answers[path] = answer({"logs": [1]})
    assert jobs.driver_logs(request(path=path)).content == b'{"logs": [1]}'
    service.is_in("ENDED")
    service.asked.clear()
    assert len(json.loads(jobs.driver_logs(request(path=path)).body())["logs"]) == 1 and service.asked == []


def test_a_slot_is_asked_about_through_the_driver_of_its_job(service, jobs):
    path = f"/taskmanagers/{JOB}-1"
    service.answers[path] = answer({"id": 1})
    assert jobs.pass_on_to_slot(request(path=path, taskmanagerid=f"{JOB}-1")).content == b'{"id": 1}'
    assert refused(jobs.pass_on_to_slot, request(taskmanagerid="x" * 200)) == (404, f"there is no slot '{'x' * 80}'")
    service.is_in("ENDED")
    assert refused(jobs.pass_on_to_slot, request(taskmanagerid=f"{JOB}-1"))[0] == 404


# ------------------------------------------------------------------------------------------------------- its end


def test_a_running_job_is_cancelled_by_its_driver_and_that_is_noted_before(service, jobs):
    service.answers[f"/jobs/{JOB}"] = answer({}, 202)
    for mode in (None, "cancel", "CANCEL"):
        assert jobs.cancel(request("PATCH", query={} if mode is None else {"mode": [mode]})).status == 202
    assert service.noted == [("cancelled", JOB)] * 3
    service.noted.clear()
    jobs.cancel(request("PATCH", query={"mode": ["stop"]}))
    assert service.noted == [], "a job that stops may be continued"


def test_a_waiting_job_is_withdrawn(service, jobs):
    service.withdrawn = True
    assert jobs.cancel(request("PATCH")).status == 202
    assert service.asked == service.noted == []


@pytest.mark.parametrize("status", [404, 410])
def test_a_driver_that_knows_no_job_is_ended(service, jobs, status):
    service.answers[f"/jobs/{JOB}"] = answer({}, status)
    assert jobs.cancel(request("PATCH")).status == 202
    assert service.noted == [("cancelled", JOB), ("ended", JOB)]


def test_a_refusal_of_the_driver_is_the_answer(service, jobs):
    service.answers[f"/jobs/{JOB}"] = answer({"errors": ["no"]}, 409)
    assert jobs.cancel(request("PATCH")).status == 409
    assert service.noted == [("cancelled", JOB)]


def test_an_ended_job_is_cancelled_only_if_it_was(service, jobs):
    service.is_in("ENDED", status="CANCELED")
    assert jobs.cancel(request("PATCH")).status == 202
    service.is_in("ENDED", status="FINISHED")
    assert refused(jobs.cancel, request("PATCH")) == (409, f"job {JOB} has ended (FINISHED)")
    assert service.asked == []


def test_one_of_several_jobs_of_a_program_is_cancelled_alone(service, jobs):
    service.answers["/jobs/second"] = answer({}, 202)
    assert jobs.cancel(request("PATCH", "/jobs/second", jobid="second")).status == 202
    assert service.noted == [], "the driver and its other jobs go on"


def test_the_state_of_a_job_without_an_overview_is_what_the_service_knows(service, jobs):
    service.overviews.of = lambda record, job_id: {"state": f"of {job_id}"}
    assert jobs.job_status(request()) == {"status": f"of {JOB}"}


# ------------------------------------------------------------------------------------------------------- changes


def outcome(changes: ChangeApi, begun: dict[str, Any]) -> dict[str, Any]:
    asked = request(triggerid=begun["request-id"])
    until(lambda: changes.change_state(asked)["status"]["id"] == "COMPLETED")
    operation: dict[str, Any] = changes.change_state(asked)["operation"]
    return operation


def test_a_job_is_rescaled_in_the_background(service, changes):
    begun = changes.rescale(request("PATCH", query={"parallelism": ["3"], "targetDirectory": ["/saved"]}))
    assert outcome(changes, begun) == {"location": "chk-1"}
    ((job_id, plan, directory),) = service.changed
    assert (job_id, plan.slots, plan.settings[options.PARALLELISM.key], directory) == (JOB, 3, "3", "/saved")


def test_a_rescale_needs_a_parallelism_and_a_running_job(service, changes):
    assert refused(changes.rescale, request("PATCH")) == (400, "the query parameter 'parallelism' is missing")
    assert refused(changes.rescale, request("PATCH", query={"parallelism": ["0"]}))[0] == 400
    service.is_in("WAITING", why="it needs slots")
    asked = request("PATCH", query={"parallelism": ["3"]})
    assert refused(changes.rescale, asked) == (409, f"job {JOB} is not running: it needs slots")
    assert service.changed == []


def test_requirements_of_vertices_rescale_the_job_if_they_ask_for_another_parallelism(service, changes):
    path = f"/jobs/{JOB}/resource-requirements"
    service.answers[path] = answer({"v": VERTEX})
    assert changes.require(request("PUT", path, {"v": VERTEX})) == {}
    assert service.changed == []
    assert changes.require(request("PUT", path, {"v": {"parallelism": {"upperBound": 4}}})) == {}
    until(lambda: service.changed)
    assert service.changed[0][1].slots == 4
    assert {method for method, *_ in service.asked} == {"GET"}


def test_requirements_of_a_job_that_does_not_run_are_refused(service, changes):
    path = f"/jobs/{JOB}/resource-requirements"
    assert refused(changes.require, request("PUT", path, {})) == (
        409,
        f"job {JOB} is not running: it has not started yet, or has ended",
    )
    service.is_in("ENDED", why="done")
    assert refused(changes.require, request("PUT", path, {})) == (409, f"job {JOB} is not running: done")


def uploaded(service: Service, tmp_path: Any) -> str:
    file = tmp_path / "file"
    file.write_bytes(b"program")
    return str(service.store.add_program(file, hashlib.sha256(b"program").hexdigest(), "job.py"))


@pytest.mark.parametrize("arguments", ["x", 7, {"a": "b"}, ["a", 1], ["a\0b"]])
def test_an_upgrade_takes_a_program_that_is_there_and_arguments_that_are_strings(service, changes, tmp_path, arguments):
    missing = "c" * 64 + "_job.py.zip"
    for program in (None, missing, "x" * 200):
        status, reason = refused(changes.upgrade, request("POST", body={"program": program}))
        assert (status, reason) == (404, f"there is no program {str(program)[:100]!r}: upload it first")
    body = {"program": uploaded(service, tmp_path), "programArgsList": arguments}
    assert refused(changes.upgrade, request("POST", body=body)) == (
        400,
        "the field 'programArgsList' is not a list of strings",
    )


def test_an_upgrade_to_the_same_program_checks_nothing_and_switches(service, changes, tmp_path):
    service.record = replace(service.record, program=uploaded(service, tmp_path))
    body = {"program": service.record.program, "programArgsList": ["y"], "targetDirectory": "/saved"}
    assert outcome(changes, changes.upgrade(request("POST", body=body))) == {"location": "chk-1"}
    ((job_id, plan, directory),) = service.changed
    assert (job_id, plan.arguments, plan.script, directory) == (JOB, ("y",), "job.py", "/saved")
    service.is_in("WAITING", why="later")
    assert refused(changes.upgrade, request("POST", body=body)) == (409, f"job {JOB} is not running: later")


@pytest.mark.parametrize("savepoint", [None, "", "a\0b"])
def test_a_restore_needs_a_savepoint(service, changes, savepoint):
    status, reason = refused(changes.restore, request("POST", body={"savepointPath": savepoint}))
    assert status == 400 and "'savepointPath' is required" in reason
    assert service.noted == []


def test_a_restore_runs_the_program_again_from_a_savepoint(service, changes):
    body = {"savepointPath": "/s", "parallelism": 3, "allowNonRestoredState": True, "submissionId": "mine"}
    assert changes.restore(request("POST", body=body)) == {"jobid": "f" * 32}
    ((_, wanted),) = service.noted
    assert (wanted.program, wanted.parallelism, wanted.submission_id) == (PROGRAM, 3, "mine")
    assert wanted.settings[options.RESTORE_PATH.key] == "/s"
    assert wanted.settings[options.RESTORE_IGNORE_UNCLAIMED.key] == "true"
    changes.restore(request("POST", body={"savepointPath": "/s"}))
    assert options.RESTORE_IGNORE_UNCLAIMED.key not in service.noted[1][1].settings
    assert service.noted[1][1].submission_id == ""


# ------------------------------------------------------------------------------------------------------- programs


def submission(body: Any = None, **query: list[str]) -> Any:
    return _submission(request("POST", body=body, query=query, jarid=PROGRAM))


def test_a_submission_has_flinks_fields():
    found = submission(
        {
            "programArgsList": ["a", "b"],
            "flinkConfiguration": {"k": "v"},
            "savepointPath": "/s",
            "allowNonRestoredState": True,
            "claimMode": "CLAIM",
            "parallelism": 3,
            "slotMemory": 7,
            "jobId": "1" * 32,
            "submissionId": "mine",
        }
    )
    assert (found.program, found.arguments, found.parallelism) == (PROGRAM, ["a", "b"], 3)
    assert (found.slot_memory_bytes, found.job_id, found.submission_id) == (7, "1" * 32, "mine")
    assert found.settings == {
        "k": "v",
        options.RESTORE_PATH.key: "/s",
        options.RESTORE_IGNORE_UNCLAIMED.key: "true",
        options.RESTORE_CLAIM_MODE.key: "CLAIM",
    }


def test_an_empty_submission_asks_for_nothing():
    found = submission()
    assert (found.arguments, dict(found.settings), found.parallelism) == ([], {}, None)
    assert (found.slot_memory_bytes, found.job_id, found.submission_id) == (0, None, "")


def test_the_claim_mode_may_have_its_name_of_before():
    assert submission({"restoreMode": "NO_CLAIM"}).settings[options.RESTORE_CLAIM_MODE.key] == "NO_CLAIM"
    both = submission({"restoreMode": "NO_CLAIM", "claimMode": "CLAIM"})
    assert both.settings[options.RESTORE_CLAIM_MODE.key] == "CLAIM"


def test_fields_that_the_body_lacks_may_be_query_parameters():
    found = submission(
        {"parallelism": 4},
        savepointPath=["/s"],
        parallelism=["3"],
        programArg=["a,b"],
        allowNonRestoredState=["TRUE"],
    )
    assert (found.parallelism, found.arguments) == (4, ["a", "b"])
    assert found.settings == {options.RESTORE_PATH.key: "/s", options.RESTORE_IGNORE_UNCLAIMED.key: "true"}
    assert submission(allowNonRestoredState=["false"]).settings == {}


@pytest.mark.parametrize(
    ("body", "query", "reason"),
    [
        ({"entryClass": "A"}, {}, "names a class in a jar"),
        ({}, {"entry-class": ["A"]}, "names a class in a jar"),
        ({"programArgsList": "a"}, {}, "'programArgsList' is not a list of strings"),
        ({"programArgsList": ["a", 1]}, {}, "'programArgsList' is not a list of strings"),
        ({"programArgsList": ["a\0"]}, {}, "holds a null character"),
        ({"flinkConfiguration": {"k": "\0"}}, {}, "holds a null character"),
        ({"flinkConfiguration": {"\0": "v"}}, {}, "holds a null character"),
        ({"flinkConfiguration": {"k": 1}}, {}, "'flinkConfiguration' is not an object of strings"),
        ({"flinkConfiguration": ["k"]}, {}, "'flinkConfiguration' is not an object of strings"),
        ({"parallelism": True}, {}, "'parallelism' is 'True', which is not of the type int"),
        ({"savepointPath": 7}, {}, "'savepointPath' is '7', which is not of the type str"),
        ({"jobId": 7}, {}, "'jobId' is '7', which is not of the type str"),
        ({"allowNonRestoredState": "yes"}, {}, "'allowNonRestoredState' is 'yes', which is not of the type bool"),
        ({}, {"allowNonRestoredState": ["yes"]}, "'allowNonRestoredState' is 'yes', not true or false"),
        ({}, {"parallelism": ["0"]}, "not a number of at least 1"),
    ],
)
def test_a_wrong_submission_is_refused_with_its_field(body, query, reason):
    with pytest.raises(HttpError, match=reason) as found:
        submission(body, **query)
    assert found.value.status == 400


def test_a_program_that_a_job_may_need_is_kept(service, programs, tmp_path):
    program = uploaded(service, tmp_path)
    service.record = replace(service.record, program=program)
    asked = request("DELETE", jarid=program)
    assert refused(programs.delete_program, asked) == (409, f"job {JOB} needs the program: it has not ended")
    service.is_in("ENDED")
    assert programs.delete_program(asked) == {}
    assert refused(programs.delete_program, asked) == (404, f"there is no program {program[:100]!r}")
    for handler in (programs.run, programs.program_plan, programs.run_application):
        assert refused(handler, asked)[0] == 404


def test_programs_are_shown_with_the_names_of_their_scripts(service, programs, tmp_path):
    program = uploaded(service, tmp_path)
    (shown,) = programs.programs(request())["files"]
    assert (shown["id"], shown["name"], shown["entry"]) == (program, "job.py.zip", [])
    assert programs.programs(request())["address"] == "http://here:1"


def test_a_program_runs_under_the_id_of_its_job(service, programs, tmp_path):
    asked = request("POST", jarid=uploaded(service, tmp_path))
    assert programs.run(asked) == {"jobid": "f" * 32, "applicationId": "f" * 32}
    found = programs.run_application(asked)
    assert isinstance(found, Response) and (found.status, found.content) == (202, {"applicationid": "f" * 32})


@pytest.mark.parametrize("query", [{}, {"digest": ["d"]}, {"name": ["n"]}, {"digest": [""], "name": ["n"]}])
def test_an_upload_names_its_digest_and_its_script(programs, query):
    assert refused(programs.upload, request("POST", query=query)) == (
        400,
        "the query parameters 'digest' and 'name' are required",
    )
