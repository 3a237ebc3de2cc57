"""Jobs of a service: submitted, watched, saved, stopped, waiting for slots, found again by the next service."""

import os
import signal
import tempfile
from dataclasses import replace

import pytest

from ekorn.cli.job_commands import list_jobs
from ekorn.common import JobStatus
from ekorn.config.job_id import JobID
from ekorn.driver.submit import further_id
from ekorn.errors import JobCancelledError, JobExecutionError
from ekorn.service.jobs.job_process import end_process
from ekorn.service.service_process import StandingService
from ekorn.web.http_client import RefusedRequest
from tests.live_jobs import until
from tests.rest.shapes import ANSWERS, READING, TEXT, misfits
from tests.service.conftest import TWO_JOBS, client_of, kill_drivers

MB = 1 << 20


def is_running(job):
    return job.get_job_status().result() is JobStatus.RUNNING


def log_of(running, job):
    return running.service.store.log(str(job.get_job_id())).read_text()


def test_a_program_runs_with_its_modules_and_its_outcome_is_kept(client, running, programs):
    job = client.submit(programs / "bounded.py", arguments=["7"])
    result = job.get_job_execution_result().result(60)
    assert result.get_job_id() == job.get_job_id()
    start, plan, *records, end = log_of(running, job).splitlines()
    assert "job 'bounded' (" in start and "vertex 0: Source: Collection Source" in plan
    assert records == ["7", "14", "21"] and "job 'bounded' finished after " in end
    until(lambda: client.jobs()[0]["phase"] == "ENDED")
    (shown,) = client.jobs()
    assert (shown["name"], shown["state"]) == ("bounded", "FINISHED")
    details = client.web.get(f"/jobs/{job.get_job_id()}")
    assert details["state"] == "FINISHED" and not misfits(READING["/jobs/{jobid}"], details)
    assert job.get_metrics()["job.numRestarts"] == "0"
    at = f"/jobs/{job.get_job_id()}/vertices/{details['vertices'][0]['id']}"
    (read,) = client.web.get(f"{at}/subtasks/metrics?get=numRecordsIn&agg=sum")
    assert read["id"] == "numRecordsIn" and read["sum"] == 3.0
    assert {"id": "0.numRecordsOut"} in client.web.get(f"{at}/metrics")
    assert not misfits(READING["/jobs/overview"], client.web.get("/jobs/overview"))
    assert not misfits(READING["/overview"], client.web.get("/overview"))


def test_a_job_outlives_its_client_and_is_saved_stopped_and_restored(client, running, programs, tmp_path):
    job = client.submit(programs / "endless.py", arguments=["a", "b c"], parallelism=2)
    until(lambda: is_running(job))
    assert "arguments ['a', 'b c']" in log_of(running, job)
    later = client_of(running).job(str(job.get_job_id()))
    until(lambda: later.get_progress().records_read > 0)
    assert os.path.isdir(later.trigger_savepoint(str(tmp_path / "first")).result(60))
    assert is_running(later)
    path = later.stop_with_savepoint(False, str(tmp_path / "second")).result(60)
    until(lambda: later.get_job_status().result() is JobStatus.FINISHED)
    again = client.submit(programs / "endless.py", parallelism=1, savepoint=path)
    until(lambda: is_running(again))
    restored = client.web.get(f"/jobs/{again.get_job_id()}/checkpoints")["latest"]["restored"]
    assert restored["external_path"] == path
    again.cancel().result(60)
    assert again.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError):
        again.get_job_execution_result().result(60)


def test_a_job_that_does_not_fit_waits_with_a_reason_and_starts_when_there_is_room(client, programs):
    first = client.submit(programs / "endless.py", parallelism=2)
    until(lambda: is_running(first))
    second = client.submit(programs / "endless.py", parallelism=1)
    until(lambda: client.jobs()[1]["why"] == "it waits: it needs 1 slot, but only 0 of 2 are free")
    assert second.get_job_status().result() is JobStatus.CREATED
    with pytest.raises(RefusedRequest, match="has not started: it waits"):
        client.web.get(f"/jobs/{second.get_job_id()}/plan")
    first.cancel().result(60)
    until(lambda: is_running(second))


def test_a_job_that_waits_is_cancelled_without_a_driver(client, programs):
    first = client.submit(programs / "endless.py", parallelism=2)
    until(lambda: is_running(first))
    second = client.submit(programs / "endless.py")
    second.cancel().result(60)
    assert client.jobs()[1]["why"] == "it was cancelled before it started" and client.jobs()[1]["pid"] == 0


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"parallelism": 3}, "it needs 3 slots, but the service has only 2"),
        (
            {"parallelism": 2, "slot_memory_bytes": 501 * MB},
            f"it claims {1002 * MB} bytes of memory, but the service has only {1000 * MB}",
        ),
        ({"parallelism": 0}, "the parallelism is 0"),
        ({"slot_memory_bytes": -1}, "the memory of a slot is -1 bytes"),
        ({"slot_memory_bytes": 5000}, "the memory of a slot is 5000 bytes; it must be 0 .* or at least 100663296"),
    ],
)
def test_a_job_that_can_never_fit_is_refused(client, programs, wanted, reason):
    with pytest.raises(RefusedRequest, match=reason):
        client.submit(programs / "endless.py", **wanted)
    assert client.jobs() == []


def test_a_program_that_takes_more_slots_than_it_asked_for_does_not_start(client, running, programs):
    text = (programs / "endless.py").read_text()
    (programs / "wide.py").write_text(text.replace("print(", "env.set_parallelism(2)\nprint("))
    job = client.submit(programs / "wide.py", parallelism=1)
    until(lambda: job.get_job_status().result() is JobStatus.FAILED)
    assert "needs 2 slots, but may use only 1" in log_of(running, job)


def test_the_logs_and_settings_of_a_jobs_driver_are_those_of_the_driver_also_when_it_has_ended(client, programs):
    job = client.submit(programs / "endless.py", arguments=["x"])
    until(lambda: is_running(job))
    at = f"/jobs/{job.get_job_id()}/jobmanager"

    def seen():
        assert "driver.log" in [each["name"] for each in client.web.get(f"{at}/logs")["logs"]]
        assert b"arguments ['x']" in client.web.ask("GET", f"{at}/logs/driver.log").body
        settings = {each["key"]: each["value"] for each in client.web.get(f"{at}/config")}
        assert settings["$internal.pipeline.job-id"] == str(job.get_job_id())

    seen()
    job.cancel().result(60)
    until(lambda: client.jobs()[0]["phase"] == "ENDED")
    seen()
    with pytest.raises(RefusedRequest, match="there is no log file"):
        client.web.get(f"{at}/logs/service.log")


def test_state_is_looked_up_through_the_service(client, programs):
    text = (programs / "endless.py").read_text()
    kept = 'numbers.key_by(remainder).as_queryable_state("latest")\nprint('
    (programs / "asked.py").write_text(text.replace("print(", kept))
    settings = {"queryable-state.enable": "true", "queryable-state.proxy.ports": "0"}
    job = client.submit(programs / "asked.py", settings=settings)
    until(lambda: is_running(job))
    at = f"/jobs/{job.get_job_id()}/state"
    until(lambda: client.web.get(at)["states"])
    assert [each["name"] for each in client.web.get(at)["states"]] == ["latest"]
    until(lambda: job.get_progress().records_read > 100)
    body = {"keys": [0, 4, 9]}
    entries = client.web.ask("POST", f"{at}/latest", body).json()["entries"]
    assert [each["found"] for each in entries] == [True, True, False]
    (entry,) = client.web.get(f"{at}/latest?key=3")["entries"]
    assert entry["value"] % 5 == 3
    with pytest.raises(RefusedRequest, match="has no value for key 'tea'"):
        client.web.get(f"{at}/latest?key=tea")


def test_a_failed_job_says_why(client, programs):
    (programs / "bounded.py").write_text((programs / "bounded.py").read_text().replace("n * ", "n / 0 * "))
    job = client.submit(programs / "bounded.py", arguments=["1"])
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        job.get_job_execution_result().result(60)
    entries = client.web.get(f"/jobs/{job.get_job_id()}/exceptions")["exceptionHistory"]["entries"]
    assert entries[0]["exceptionName"] == "ZeroDivisionError"


def test_a_program_that_starts_no_job_ends_as_it_exits(client, programs):
    (programs / "nothing.py").write_text("import sys; sys.exit(3)")
    job = client.submit(programs / "nothing.py")
    until(lambda: job.get_job_status().result() is JobStatus.FAILED)
    assert "exit code 3" in client.jobs()[0]["why"]


def test_a_job_is_cancelled_whose_program_has_not_come_to_it(client, programs):
    (programs / "slow.py").write_text("import time; time.sleep(600)")
    job = client.submit(programs / "slow.py")
    until(lambda: client.jobs()[0]["phase"] == "STARTED")
    job.cancel().result(60)
    assert job.get_job_status().result() is JobStatus.CANCELED


def test_a_job_whose_driver_was_killed_and_that_has_no_checkpoint_fails(client, running, programs):
    job = client.submit(programs / "endless.py")
    until(lambda: is_running(job))
    os.kill(client.jobs()[0]["pid"], signal.SIGKILL)
    until(lambda: client.jobs()[0]["phase"] == "ENDED")
    assert job.get_job_status().result() is JobStatus.FAILED
    assert "has no checkpoint to continue from" in log_of(running, job)
    assert client.jobs()[0]["why"] == "its driver was lost, and the next one could not continue; see its log"


def checkpoints_in(folder):
    return {"execution.checkpointing.interval": "50ms", "execution.checkpointing.dir": (folder / "kept").as_uri()}


def completed(client, job):
    return client.web.get(f"/jobs/{job.get_job_id()}/checkpoints")["counts"]["completed"]


def restored_by(client, job):
    restored = client.web.get(f"/jobs/{job.get_job_id()}/checkpoints")["latest"]["restored"]
    return restored and restored["external_path"]


def test_the_next_service_finds_the_jobs_of_the_one_before(settings, programs, tmp_path):
    first = StandingService(settings)
    client = client_of(first)
    kept = client.submit(programs / "endless.py")
    ended = client.submit(programs / "endless.py", settings=checkpoints_in(tmp_path))
    until(lambda: is_running(kept) and is_running(ended) and completed(client, ended) > 0)
    pids = {job["id"]: job["pid"] for job in client.jobs()}
    first.close()
    os.kill(pids[str(ended.get_job_id())], signal.SIGKILL)
    second = StandingService(settings)
    try:
        client = client_of(second)
        found = client.job(str(kept.get_job_id()))
        assert is_running(found)
        again = client.job(str(ended.get_job_id()))
        until(lambda: is_running(again) and client.jobs()[1]["pid"] != pids[str(ended.get_job_id())])
        assert restored_by(client, again)
        found.cancel().result(60)
    finally:
        second.close()
        kill_drivers(second)


def test_a_driver_that_a_killed_service_started_and_did_not_write_down_is_not_started_twice(settings, programs):
    first = StandingService(settings)
    client = client_of(first)
    job = client.submit(programs / "endless.py")
    until(lambda: is_running(job))
    first.close()
    (record,) = first.service.jobs()
    first.service.store.save(replace(record, phase="WAITING", pid=0, pid_started=0))
    second = StandingService(settings)
    try:
        again = client_of(second).job(record.job_id)
        until(lambda: is_running(again))
        assert client_of(second).jobs()[0]["pid"] == record.pid
        again.cancel().result(60)
    finally:
        second.close()
        end_process(record.pid, record.pid_started, at_once=True)
        kill_drivers(second)


def test_a_driver_that_was_killed_is_started_again_and_continues_from_the_last_checkpoint(client, programs, tmp_path):
    job = client.submit(programs / "endless.py", settings=checkpoints_in(tmp_path))
    until(lambda: is_running(job) and completed(client, job) > 1)
    pid = client.jobs()[0]["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: client.jobs()[0]["pid"] not in (0, pid) and is_running(job))
    assert f"{job.get_job_id()}/chk-" in restored_by(client, job)


def test_a_failed_job_is_resumed_under_its_id(client, programs, tmp_path):
    broken = tmp_path / "broken"
    (programs / "steps.py").write_text(
        f"import os\ndef remainder(n):\n    assert not os.path.exists({str(broken)!r})\n    return n % 5\n"
    )
    settings = {**checkpoints_in(tmp_path), "restart-strategy.type": "none"}
    settings["execution.checkpointing.externalized-checkpoint-retention"] = "RETAIN_ON_CANCELLATION"
    job = client.submit(programs / "endless.py", settings=settings)
    until(lambda: is_running(job) and completed(client, job) > 0)
    broken.touch()
    until(lambda: client.jobs()[0]["phase"] == "ENDED")
    assert client.jobs()[0]["state"] == "FAILED"
    broken.unlink()
    resuming = {**settings, "ekorn.resume": "true"}
    other = client.submit(programs / "endless.py", arguments=["other"])
    until(lambda: is_running(other))
    again = client.submit(programs / "endless.py", settings=resuming)
    assert again.get_job_id() == job.get_job_id()
    until(lambda: is_running(again))
    assert f"{job.get_job_id()}/chk-" in restored_by(client, again)
    with pytest.raises(RefusedRequest, match=f"cannot be resumed, because it has not ended: job {job.get_job_id()}"):
        client.submit(programs / "endless.py", settings=resuming)
    with pytest.raises(RefusedRequest, match=r"ekorn\.resume"):
        client.submit(programs / "endless.py", settings={"ekorn.resume": "perhaps"})


def test_a_program_of_a_job_that_has_not_ended_is_not_deleted(client, programs):
    job = client.submit(programs / "endless.py")
    until(lambda: is_running(job))
    program = client.jobs()[0]["program"]
    with pytest.raises(RefusedRequest, match="needs the program: it has not ended"):
        client.web.ask("DELETE", f"/jars/{program}").json()
    job.cancel().result(60)
    until(lambda: client.jobs()[0]["phase"] == "ENDED")
    client.web.ask("DELETE", f"/jars/{program}").json()
    assert client.web.get("/jars")["files"] == []


def test_the_outcome_of_a_savepoint_is_kept_when_its_driver_has_ended(client, programs, tmp_path):
    job = client.submit(programs / "endless.py")
    until(lambda: is_running(job))
    taken = job.trigger_savepoint(str(tmp_path / "saved")).result(60)
    (tmp_path / "file").touch()
    at = f"/jobs/{job.get_job_id()}/savepoints"
    refused = client.web.ask("POST", at, {"target-directory": str(tmp_path / "file")}).json()["request-id"]
    until(lambda: client.web.get(f"{at}/{refused}")["status"]["id"] == "COMPLETED")
    last = client.web.ask("POST", at, {"target-directory": str(tmp_path / "end"), "cancel-job": True}).json()
    until(lambda: client.jobs()[0]["phase"] == "ENDED")
    assert "failure-cause" in client.web.get(f"{at}/{refused}")["operation"]
    location = client.web.get(f"{at}/{last['request-id']}")["operation"]["location"]
    assert os.path.isdir(location) and location != taken


def test_jobs_whose_ids_begin_alike_are_told_apart(client, programs):
    chosen = ["0" * 31 + digit for digit in "12"]
    jobs = [client.submit(programs / "endless.py", settings={"$internal.pipeline.job-id": each}) for each in chosen]
    until(lambda: all(is_running(job) for job in jobs))
    assert [client.web.get(f"/jobs/{each}")["jid"] for each in chosen] == chosen


def test_no_secret_is_on_a_command_line(client, programs):
    job = client.submit(programs / "endless.py", arguments=["hush-1"], settings={"spark.my.password": "hush-2"})
    until(lambda: is_running(job))
    (shown,) = client.jobs()
    with open(f"/proc/{shown['pid']}/cmdline", "rb") as line:
        assert b"hush" not in line.read()
    assert shown["settings"]["spark.my.password"] == "******"
    answers = str(client.web.get("/service/jobs")) + str(client.web.get(f"/jobs/{job.get_job_id()}"))
    assert "hush" not in answers


def test_a_driver_that_hangs_holds_up_no_other_and_is_named(client, programs, capsys):
    hung, other = (client.submit(programs / "endless.py") for _ in range(2))
    until(lambda: is_running(hung) and is_running(other))
    pid = client.jobs()[0]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        shown = client.jobs()
        assert [(job["silent"], job["state"]) for job in shown] == [(True, "INITIALIZING"), (False, "RUNNING")]
        assert list_jobs(client) == 0
        printed = capsys.readouterr().out
        assert f"{hung.get_job_id()}: its driver does not answer" in printed
        assert f"{other.get_job_id()}: its driver" not in printed
    finally:
        os.kill(pid, signal.SIGCONT)


def test_programs_are_kept_with_their_jobs_and_a_few_more(settings, programs):
    service = StandingService(replace(settings, jobs_kept=1, programs_kept=1))
    client = client_of(service)
    try:
        uploads = []
        for number in range(3):
            (programs / "steps.py").write_text(f"def remainder(n):\n    return n % {number + 2}\n")
            uploads.append(client.upload(programs / "endless.py"))
        kept = [each["id"] for each in client.web.get("/jars")["files"]]
        assert kept == uploads[-1:]  # of those that no job needs, the latest
        jobs = []
        for number in range(3):
            (programs / "nothing.py").write_text(f"print({number})")
            jobs.append(client.submit(programs / "nothing.py"))
            until(lambda: client.jobs()[-1]["phase"] == "ENDED")
        until(lambda: len(client.jobs()) == 1)
        named = client.jobs()[0]["program"]
        until(lambda: len(client.web.get("/jars")["files"]) == 2)
        assert named in {each["id"] for each in client.web.get("/jars")["files"]}
    finally:
        service.close()


def test_a_job_whose_memory_is_not_free_waits_with_a_reason(client, programs):
    first = client.submit(programs / "endless.py", slot_memory_bytes=600 * MB)
    until(lambda: is_running(first))
    second = client.submit(programs / "endless.py", slot_memory_bytes=600 * MB)
    waiting = f"it waits: it claims {600 * MB} bytes of memory, but only {400 * MB} of {1000 * MB} are free"
    until(lambda: client.jobs()[1]["why"] == waiting)
    (slot,) = client.web.get("/taskmanagers")["taskmanagers"]
    assert slot["slot"]["memoryLimit"] == 600 * MB, "what it claims is what it may use"
    first.cancel().result(60)
    until(lambda: is_running(second))


def test_slots_of_jobs_whose_ids_begin_alike_are_told_apart(client, programs):
    chosen = ["abcdef01" + "0" * 23 + digit for digit in "12"]
    jobs = [client.submit(programs / "endless.py", settings={"$internal.pipeline.job-id": each}) for each in chosen]
    until(lambda: all(is_running(job) for job in jobs))
    until(lambda: len(client.web.get("/taskmanagers")["taskmanagers"]) == 2)
    ids = [slot["id"] for slot in client.web.get("/taskmanagers")["taskmanagers"]]
    assert ids == [f"{each}-slot-0" for each in chosen]
    assert [client.web.get(f"/taskmanagers/{each}")["id"] for each in ids] == ids


def test_every_job_of_a_program_has_an_id_and_is_listed(client, programs):
    (programs / "two.py").write_text(TWO_JOBS)
    first = str(client.submit(programs / "two.py").get_job_id())
    until(lambda: client.jobs()[0]["phase"] == "ENDED")
    jobs = client.web.get("/jobs/overview")["jobs"]
    assert [job["name"] for job in jobs] == ["one", "two"] and jobs[0]["jid"] == first != jobs[1]["jid"]
    second = jobs[1]["jid"]
    assert client.jobs()[0]["further"] == [second] and second == str(further_id(JobID(first), 2))
    assert client.web.get(f"/jobs/{second}")["name"] == "two"
    assert client.job(second).get_job_status().result() is JobStatus.FINISHED


def test_an_entry_class_is_refused(client, programs):
    program = client.upload(programs / "endless.py")
    with pytest.raises(RefusedRequest, match="names a class in a jar"):
        client.web.ask("POST", f"/jars/{program}/run", {"entryClass": "org.Main"}).json()


def test_what_the_service_answers_has_the_shapes_of_its_description(client, programs, tmp_path):
    first, waiting = client.submit(programs / "endless.py", parallelism=2), client.submit(programs / "endless.py")
    until(lambda: is_running(first))
    job = str(first.get_job_id())
    trigger = client.web.ask("POST", f"/jobs/{job}/savepoints", {"target-directory": str(tmp_path / "saved")}).json()
    until(lambda: client.web.get(f"/jobs/{job}/savepoints/{trigger['request-id']}")["status"]["id"] == "COMPLETED")
    asked = 0
    for name, shape in ANSWERS.items():
        method, _, path = name.partition(" ")
        filled = path.replace("{jobid}", job).replace("{triggerid}", trigger["request-id"])
        if method != "GET" or "{" in filled or shape == TEXT:
            continue
        answer = client.web.ask("GET", filled)
        if answer.status == 200:
            asked += 1
            assert not misfits(shape, answer.json()), path
    assert asked > 25 and waiting.get_job_status().result() is JobStatus.CREATED


def test_a_submission_that_is_sent_again_starts_one_job(client, programs):
    program = client.upload(programs / "endless.py")
    sent = [{"submissionId": name} for name in ("one", "one", "two")]
    ids = [client.web.ask("POST", f"/jars/{program}/run", body).json()["jobid"] for body in sent]
    assert ids[0] == ids[1] != ids[2] and [job["id"] for job in client.jobs()] == [ids[0], ids[2]]


@pytest.fixture
def stranger_has_the_runtime_folder(runtime_dir, monkeypatch, tmp_path):
    """A runtime folder that others may enter, as one that another user has made beforehand."""
    taken = tmp_path / "taken"
    taken.mkdir()
    taken.chmod(0o777)
    monkeypatch.setenv("EKORN_RUNTIME_DIR", str(taken))


def test_a_strangers_runtime_folder_stops_no_job(settings, programs, stranger_has_the_runtime_folder):
    with tempfile.TemporaryDirectory(prefix="s") as short:
        service = StandingService(replace(settings, folder=f"{short}/s"))
        try:
            client = client_of(service)
            client.submit(programs / "bounded.py", arguments=["1"])
            until(lambda: client.jobs()[0]["phase"] == "ENDED")
            assert client.jobs()[0]["state"] == "FINISHED"
        finally:
            service.close()


def test_a_job_without_a_place_for_its_socket_says_why(settings, programs, stranger_has_the_runtime_folder, tmp_path):
    service = StandingService(replace(settings, folder=str(tmp_path / ("s" * 100))))
    try:
        client = client_of(service)
        client.submit(programs / "bounded.py", arguments=["1"])
        until(lambda: client.jobs()[0]["phase"] == "ENDED")
        assert "could not be started: there is no safe folder for the sockets" in client.jobs()[0]["why"]
    finally:
        service.close()
