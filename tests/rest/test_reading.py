"""What a driver shows of its jobs, in Flink's form."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ekorn.common import JobStatus, Types
from ekorn.datastream import MapFunction
from ekorn.engine.protocol import Failure
from ekorn.errors import RescaleError
from tests import live_jobs
from tests.driver.submitted_jobs import start_locally
from tests.imports import SOURCE
from tests.live_jobs import until
from tests.rest.shapes import ANSWERS, READING, misfits, names_of, with_names

ROOT = Path(__file__).resolve().parents[2]


def test_every_answer_has_the_shape_of_flinks(caller, run, tmp_path):
    handle = run(tmp_path)
    until(lambda: handle.progress().checkpoints_completed > 1)
    until(lambda: handle.request_savepoint(str(tmp_path / "saved")).result(30))
    handle.request_rescale(1).result(30)
    until(lambda: handle.progress().checkpoints_completed > 2)
    names = names_of(caller.get, str(handle.job_id))
    for path, shape in READING.items():
        assert not misfits(shape, caller.get(with_names(path, caller.get, names))), path
    for path in ("rescales", "time-line", "metric-history"):
        answer = caller.get(f"/jobs/{handle.job_id}/{path}")
        assert not misfits(ANSWERS[f"GET /jobs/{{jobid}}/{path}"], answer), path


def test_the_result_of_a_job_is_told_when_it_has_ended(caller, run):
    path = "/jobs/{jobid}/execution-result"
    handle = run()
    at = path.format(jobid=handle.job_id)
    assert caller.get(at) == {"status": {"id": "IN_PROGRESS"}}
    handle.cancel()
    handle.results.wait_for_end(30)
    result = caller.get(at)["job-execution-result"]
    assert (result["id"], result["application-status"]) == (str(handle.job_id), "CANCELED")

    def failing(n):
        raise LookupError("no such shop")

    failed = run(function=failing)
    failed.results.wait_for_end(30)
    answer = caller.get(path.format(jobid=failed.job_id))
    assert not misfits(READING[path], answer)
    result = answer["job-execution-result"]
    assert (result["application-status"], result["failure-cause"]["class"]) == ("FAILED", "LookupError")


def test_rescales_are_counted_by_their_outcome(caller, run, tmp_path):
    handle = run(tmp_path)
    until(lambda: handle.progress().checkpoints_completed > 0)
    handle.request_rescale(1).result(30)
    with pytest.raises(RescaleError):
        handle.request_rescale(1).result(30)
    at = f"/jobs/{handle.job_id}/rescales"
    found = caller.get(f"{at}/overview")
    assert found["rescalesCounts"] == {"completed": 1, "ignored": 1, "failed": 0, "inProgress": 0}
    done = found["latest"]["completed"]
    assert {(each["preRescaleParallelism"], each["postRescaleParallelism"]) for each in done["vertices"].values()} == {
        (2, 1)
    }
    (slots,) = done["slots"].values()
    assert (slots["preRescaleSlots"], slots["postRescaleSlots"]) == (2, 1)
    ignored = found["latest"]["ignored"]
    assert "no operator would change its parallelism" in ignored["schedulerStates"][0]["stringifiedException"]
    assert [each["rescaleAttemptId"] for each in caller.get(f"{at}/history")] == [2, 1]
    assert caller.get(f"{at}/details/{done['rescaleUuid']}") == done
    assert caller.ask("GET", f"{at}/details/none")[0] == 404
    assert caller.get(f"{at}/summary")["completedRescalesDurationStatsInMillis"]["p50"] >= 0
    assert caller.get(f"{at}/config")["schedulerExecutionMode"] is None


def test_failures_are_chosen_by_labels_which_none_has(caller, run):
    def failing(n):
        raise LookupError("no such shop")

    handle = run(function=failing)
    handle.results.wait_for_end(30)
    at = f"/jobs/{handle.job_id}/exceptions"
    assert len(caller.get(at)["exceptionHistory"]["entries"]) == 1
    assert caller.get(f"{at}?failureLabelFilter=team:shop")["exceptionHistory"]["entries"] == []


def test_the_job_is_shown_as_it_runs(caller, run):
    handle = run()
    overview = caller.get("/overview")
    assert (overview["jobs-running"], overview["jobs-finished"], overview["slots-total"]) == (1, 0, 2)
    assert caller.get("/jobs") == {"jobs": [{"id": str(handle.job_id), "status": "RUNNING"}]}
    (shown,) = caller.get("/jobs/overview")["jobs"]
    assert (shown["name"], shown["state"], shown["tasks"]["running"], shown["tasks"]["total"]) == (
        "endless", "RUNNING", 4, 4,
    )  # fmt: skip
    details = caller.get(f"/jobs/{handle.job_id}")
    first, second = details["vertices"]
    assert first["metrics"]["write-records"] > 0
    assert [node["id"] for node in details["plan"]["nodes"]] == [first["id"], second["id"]]
    assert details["plan"]["nodes"][1]["inputs"][0]["id"] == first["id"]
    assert details["plan"]["nodes"][1]["inputs"][0]["ship_strategy"] == "HASH"
    assert details["stream-graph"] is None
    handle.cancel()
    handle.results.wait_for_end(30)
    assert caller.get("/jobs")["jobs"][0]["status"] == "CANCELED"
    ended = caller.get(f"/jobs/{handle.job_id}")
    assert ended["end-time"] >= ended["start-time"] and ended["status-counts"]["CANCELED"] == 2


def test_metrics_are_listed_chosen_and_combined(caller, run):
    handle = run()
    vertex = caller.get(f"/jobs/{handle.job_id}")["vertices"][1]["id"]
    at = f"/jobs/{handle.job_id}/vertices/{vertex}"
    names = [each["id"] for each in caller.get(f"{at}/metrics")]
    assert {"0.numRecordsIn", "1.numRecordsIn", "0.busyTimeMsPerSecond"} <= set(names)
    until(lambda: int(caller.get(f"{at}/metrics?get=0.numRecordsIn")[0]["value"]) > 0)
    (both,) = caller.get(f"{at}/subtasks/metrics?get=numRecordsIn&agg=sum,max")
    assert set(both) == {"id", "sum", "max"} and both["sum"] >= both["max"] > 0
    (first,) = caller.get(f"{at}/subtasks/metrics?get=numRecordsIn&subtasks=0")
    assert first["min"] == first["max"] == first["avg"]
    assert caller.get(f"/jobs/{handle.job_id}/metrics?get=numRestarts,nothing") == [{"id": "numRestarts", "value": "0"}]
    ratios = caller.get(f"{at}/backpressure")["subtasks"][0]
    assert sum(ratios[name] for name in ("ratio", "busyRatio", "idleRatio")) == pytest.approx(1, abs=0.01)


def test_the_page_of_metrics_has_every_metric(caller, run):
    handle = run()
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    names = [each["id"] for each in caller.get(f"/jobs/{handle.job_id}/metrics")]
    for vertex in caller.get(f"/jobs/{handle.job_id}")["vertices"]:
        of_subtasks = caller.get(f"/jobs/{handle.job_id}/vertices/{vertex['id']}/metrics")
        names += [each["id"].rpartition(".")[2] for each in of_subtasks]
    slot = caller.get("/taskmanagers")["taskmanagers"][0]["id"]
    names += [each["id"] for at in ("jobmanager", f"taskmanagers/{slot}") for each in caller.get(f"/{at}/metrics")]
    for path in [*(SOURCE / "operators").rglob("*.py"), *(SOURCE / "subtask").rglob("*.py")]:
        names += re.findall(r'"(num[A-Z]\w+)"', path.read_text(encoding="utf-8"))
    assert {"numRestarts", "numRecordsIn", "numLateRecordsDropped"} <= set(names)
    assert not [name for name in sorted(set(names)) if f"`{name.removesuffix('Total')}`" not in page]


def test_checkpoints_are_shown_with_their_parts(caller, run, tmp_path):
    handle = run(tmp_path)
    until(lambda: handle.progress().checkpoints_completed > 2)
    path = handle.request_savepoint(str(tmp_path / "saved")).result(30)
    found = caller.get(f"/jobs/{handle.job_id}/checkpoints")
    assert found["counts"]["completed"] > 2
    assert found["latest"]["savepoint"]["external_path"] == path
    assert found["latest"]["savepoint"]["checkpoint_type"] == "SAVEPOINT"
    assert found["latest"]["savepoint"]["discarded"] is False
    oldest = min((each for each in found["history"] if not each["is_savepoint"]), key=lambda each: each["id"])
    assert oldest["discarded"] is True, "one checkpoint is retained"
    saved = found["latest"]["savepoint"]["id"]
    whole = caller.get(f"/jobs/{handle.job_id}/checkpoints/details/{saved}")
    assert sum(part["state_size"] for part in whole["tasks"].values()) == whole["state_size"] > 0
    assert whole["num_acknowledged_subtasks"] == whole["num_subtasks"] == 4
    vertex = next(iter(whole["tasks"]))
    parts = caller.get(f"/jobs/{handle.job_id}/checkpoints/details/{saved}/subtasks/{vertex}")["subtasks"]
    assert [part["status"] for part in parts] == ["completed", "completed"]


def test_the_figures_of_the_last_hours_are_told_after_a_moment(caller, run, tmp_path):
    handle = run(tmp_path)
    path = f"/jobs/{handle.job_id}/metric-history"
    until(lambda: len(points := caller.get(path)["points"]) > 2 and points[-1]["stateSize"] and points[-1]["latency"])
    points = caller.get(path)["points"]
    names = {"timestamp", "recordsPerSecond", "latency", "busyRatio", "backPressuredRatio", "restarts"}
    assert set(points[0]) == names | {"stateSize", "checkpointDuration", "checkpointSize", "driverMemory", "slotMemory"}
    assert points[-1]["driverMemory"] > 1 << 20 and points[-1]["checkpointSize"] > 0
    assert points[-1]["stateSize"] > 0 and points[-1]["checkpointDuration"] >= 0 and points[-1]["latency"] > 0
    later = caller.get(f"{path}?since={points[0]['timestamp']}")["points"]
    assert later[: len(points) - 1] == points[1:]
    assert caller.ask("GET", f"{path}?since=never")[0] == 400


class Priced(MapFunction):
    """Has metrics of its own, and a name with commas."""

    def open(self, runtime_context):
        self.frauds = runtime_context.get_metrics_group().counter("frauds")

    def map(self, value):
        self.frauds.inc()
        return value % 5


def test_the_metrics_of_a_vertex_are_told_over_time(caller, run):
    handle = run(function=Priced(), name="check, and price")
    vertex = caller.get(f"/jobs/{handle.job_id}")["vertices"][0]["id"]
    at, name = f"/jobs/{handle.job_id}/vertices/{vertex}", quote("check, and price.frauds")
    path = f"{at}/metric-history?get=numRecordsIn&get={name}"
    until(lambda: len(caller.get(path)["timestamps"]) > 2)
    both = caller.get(f"{path}&agg=sum,max")
    assert not misfits(ANSWERS["GET /jobs/{jobid}/vertices/{vertexid}/metric-history"], both)
    found = {(each["id"], each["agg"]): each["values"] for each in both["series"]}
    assert set(found) == {(name, agg) for name in ("numRecordsIn", "check, and price.frauds") for agg in ("sum", "max")}
    frauds = found["check, and price.frauds", "sum"]
    assert 0 < frauds[0] < frauds[-1] and len(frauds) == len(both["timestamps"])
    later = caller.get(f"{path}&since={both['timestamps'][0]}")
    assert later["timestamps"][: len(frauds) - 1] == both["timestamps"][1:]
    assert [each["agg"] for each in later["series"][:4]] == ["min", "max", "avg", "sum"]
    single = caller.get(f"{path}&subtasks=0-1")["series"]
    assert [each["id"][:2] for each in single] == ["0.", "1.", "0.", "1."]
    assert len(caller.get(f"{path}&points=2")["timestamps"]) == 2
    assert len(caller.get(f"{at}/metric-history")["series"]) > 40, "everything, if nothing is chosen"
    assert caller.ask("GET", f"{path}&agg=median")[0] == 400
    (now,) = caller.get(f"{at}/subtasks/metrics?get={name}&agg=sum")
    assert now["sum"] >= frauds[-1], "a known name is not separated at its commas"
    assert caller.get(f"{at}/metrics?get={quote('0.check, and price.frauds')}")


def test_the_detector_of_the_tutorial_shows_the_frauds_that_it_counts(caller, web):
    page = (ROOT / "docs" / "tutorial" / "8-fraud_on_kafka.md").read_text(encoding="utf-8")
    assert "`frauds`" in page
    program: dict[str, Any] = {}
    exec(page.partition('title="fraud.py"\n')[2].partition("\nenv = ")[0], program)
    env = live_jobs.environment(parallelism=2)
    payments = live_jobs.generated(env, None, 1000).map(
        lambda n: {"account": str(n % 7), "cents": 50 if n // 7 % 2 == 0 else 70_000, "time_ms": n}
    )
    by_account = payments.key_by(lambda payment: payment["account"])
    by_account.process(program["Detector"](), Types.STRING()).name("detector").uid("detector")
    handle = start_locally(env, "fraud")
    web.jobs.add(handle)
    try:
        vertex = caller.get(f"/jobs/{handle.job_id}")["vertices"][-1]["id"]
        path = f"/jobs/{handle.job_id}/vertices/{vertex}/subtasks/metrics?get=detector.frauds&agg=sum"
        until(lambda: [each["sum"] > 0 for each in caller.get(path)] == [True])
    finally:
        handle.cancel()
        handle.results.wait_for_end(30)


def test_errors_of_several_slots_are_shown_together(caller, run):
    handle = run()
    others = (Failure(KeyError("second"), 1),)
    handle.view.statistics.fail(Failure(ValueError("first"), 0, others=others))
    (entry,) = caller.get(f"/jobs/{handle.job_id}/exceptions")["exceptionHistory"]["entries"]
    (other,) = entry["concurrentExceptions"]
    assert (entry["exceptionName"], other["exceptionName"]) == ("builtins.ValueError", "builtins.KeyError")
    assert entry["taskManagerId"] != other["taskManagerId"]


def test_a_failure_is_shown_with_the_users_frames(caller, run):
    def failing(n):
        if n > 20:
            raise LookupError("no such shop")
        return n

    handle = run(function=failing)
    assert handle.results.wait_for_end(30) and handle.status() is JobStatus.FAILED
    (entry,) = caller.get(f"/jobs/{handle.job_id}/exceptions")["exceptionHistory"]["entries"]
    assert entry["exceptionName"] == "LookupError"
    assert "no such shop" in entry["stacktrace"] and "in failing" in entry["stacktrace"]
    assert entry["taskName"].endswith("/2)")
    states = caller.get(f"/jobs/{handle.job_id}")["vertices"][0]["tasks"]
    assert states["FAILED"] >= 1 and states["RUNNING"] == 0


def test_secrets_are_masked(caller, run):
    run(**{"spark__hadoop__fs__s3a__secret__key": "hush"})
    values = {each["key"]: each["value"] for each in caller.get("/jobmanager/config")}
    assert values["spark.hadoop.fs.s3a.secret.key"] == "******"


def test_secrets_are_masked_in_urls_and_among_the_parameters_of_a_job(caller, run):
    parameters = "db.passwd:HUSH1,shop:north,lake:s3://KEY:HUSH2@bucket"
    handle = run(
        **{"my__dir": "s3://KEY:HUSH3@bucket", "my__pwd": "HUSH4", "pipeline__global-job-parameters": parameters}
    )
    for path in ("/jobmanager/config", f"/jobs/{handle.job_id}/config", f"/jobs/{handle.job_id}/jobmanager/config"):
        assert "HUSH" not in str(caller.get(path))
    user = caller.get(f"/jobs/{handle.job_id}/config")["execution-config"]["user-config"]
    assert user["shop"] == "north" and user["db.passwd"] == "******"


def test_secrets_are_masked_in_the_texts_of_failures(caller, run):
    def failing(n):
        raise LookupError("cannot log in with HUSH1-of-the-shop at s3://KEY:HUSH2@bucket, password=HUSH3")

    handle = run(function=failing, **{"my__pwd": "HUSH1-of-the-shop"})
    handle.results.wait_for_end(30)
    handle.view.statistics.fail(Failure(OSError("no HUSH1-of-the-shop"), 0, others=(Failure(OSError("pwd=HUSH4"), 1),)))
    found = caller.get(f"/jobs/{handle.job_id}/exceptions")["exceptionHistory"]["entries"]
    assert len(found) == 2 and "HUSH" not in str(found)
    assert "cannot log in with ****** at s3://******@bucket, password=******" in found[1]["stacktrace"]


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/jobs/nobody", 404, "there is no job 'nobody'"),
        ("/jobs/{job}/vertices/none", 404, "has no vertex"),
        ("/jobs/{job}/vertices/{vertex}/subtasks/7", 404, "has no subtask 7"),
        ("/jobs/{job}/vertices/{vertex}/subtasks/-1", 400, "not a number"),
        ("/jobs/{job}/vertices/{vertex}/subtasks/metrics?agg=most", 400, "unknown aggregation 'most'"),
        ("/jobs/{job}/checkpoints/details/999", 404, "no checkpoint 999"),
        ("/jobs/{job}/exceptions?maxExceptions=few", 400, "not a number"),
        ("/jobmanager/logs/..%2Fsecret", 404, "no log file"),
        ("/nowhere", 404, "no path /nowhere"),
    ],
)
def test_what_is_not_there_is_refused_with_a_reason(caller, run, path, status, reason):
    handle = run()
    vertex = caller.get(f"/jobs/{handle.job_id}")["vertices"][0]["id"]
    found, answer = caller.ask("GET", path.format(job=handle.job_id, vertex=vertex))
    assert found == status and reason in answer["errors"][0]
