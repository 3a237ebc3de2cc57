"""DataSet programs as jobs: what the REST API says about them, while they run and afterwards."""

import threading

import pytest

from ekorn.cli import job_commands
from ekorn.cli.found_jobs import find_jobs
from ekorn.cli.log_command import logs
from ekorn.common import Configuration, IntCounter, JobStatus, RestartStrategies
from ekorn.dataset import ExecutionEnvironment, MapFunction
from ekorn.driver.runtime_folder import runtime_folder
from ekorn.errors import CheckpointError, JobCancelledError, JobExecutionError
from ekorn.rest.driver_web import WEB
from ekorn.testing import on_local_engine
from tests.live_jobs import until
from tests.rest.conftest import Caller

REFUSED = "a DataSet program has no checkpoints"


class Gate:
    """Holds the records of a job back; a function of a module is pickled by its name, so there is one for each test."""

    arrived, go_on = threading.Event(), threading.Event()


@pytest.fixture(autouse=True)
def gate():
    Gate.arrived, Gate.go_on = threading.Event(), threading.Event()
    yield Gate
    Gate.go_on.set()


def held_back(value):
    Gate.arrived.set()
    assert Gate.go_on.wait(60)
    return value


class Counting(MapFunction):
    def open(self, runtime_context):
        self.seen = IntCounter()
        runtime_context.add_accumulator("seen", self.seen)

    def map(self, value):
        self.seen.add(1)
        return value % 3, value


@pytest.fixture
def env(runtime_dir):
    configuration = Configuration.from_dict({"ekorn.web": "auto"})
    with on_local_engine():
        yield ExecutionEnvironment(configuration).set_parallelism(2)
    Gate.go_on.set()
    WEB.close()


@pytest.fixture
def caller(runtime_dir):
    """A client of the web server of this process, which the first job opens."""
    return LaterCaller()


class LaterCaller:
    def ask(self, method, path, body=None):
        token = (runtime_folder() / "web.token").read_text().strip()
        assert WEB.address is not None
        return Caller(int(WEB.address.rpartition(":")[2]), token).ask(method, path, body)

    def get(self, path):
        status, answer = self.ask("GET", path)
        assert status == 200, (path, status, answer)
        return answer


def last_job(caller):
    """Return the id of the job that was started last: the web server shows those of earlier tests too."""
    return caller.get("/jobs")["jobs"][-1]["id"]


def summed(env):
    numbers = env.generate_sequence(1, 6).map(Counting()).name("spread")
    return numbers.group_by(0).reduce(lambda a, b: (a[0], a[1] + b[1])).name("sum")


def test_a_finished_job_has_plan_records_bytes_and_accumulators(env, caller, tmp_path):
    summed(env).write_as_text(tmp_path / "out")
    result = env.execute("sums")
    job_id = str(result.get_job_id())
    assert {"id": job_id, "status": "FINISHED"} in caller.get("/jobs")["jobs"]
    (overview,) = [each for each in caller.get("/jobs/overview")["jobs"] if each["jid"] == job_id]
    assert (overview["name"], overview["state"], overview["jobType"]) == ("sums", "FINISHED", "BATCH")
    assert overview["tasks"]["finished"] == overview["tasks"]["total"] == 4

    job = caller.get(f"/jobs/{job_id}")
    spread, total = job["vertices"]
    assert spread["name"].endswith("-> spread -> sum") and total["name"].startswith("sum -> ")
    assert (spread["metrics"]["read-records"], spread["metrics"]["write-records"]) == (
        6,
        6,
    )  # three keys in each subtask
    assert (total["metrics"]["read-records"], total["metrics"]["write-records"]) == (6, 2)
    assert 0 < total["metrics"]["read-bytes"] == spread["metrics"]["write-bytes"]
    (edge,) = job["plan"]["nodes"][1]["inputs"]
    assert (edge["id"], edge["ship_strategy"]) == (spread["id"], "Hash Partition on [0]")
    assert caller.get(f"/jobs/{job_id}/plan")["plan"] == job["plan"]

    (counted,) = caller.get(f"/jobs/{job_id}/accumulators")["user-task-accumulators"]
    assert counted == {"name": "seen", "type": "IntCounter", "value": "6"}
    by_subtask = caller.get(f"/jobs/{job_id}/vertices/{spread['id']}/subtasks/accumulators")["subtasks"]
    assert [each["user-accumulators"][0]["value"] for each in by_subtask] == ["3", "3"]
    assert result.get_accumulator_result("seen") == 6
    ended = caller.get(f"/jobs/{job_id}/execution-result")["job-execution-result"]
    assert ended["application-status"] == "SUCCEEDED"
    assert caller.get(f"/jobs/{job_id}/config")["execution-config"]["job-parallelism"] == 2
    statuses = [each["status"] for each in caller.get(f"/jobs/{job_id}/time-line")["changes"]]
    assert statuses == ["CREATED", "RUNNING", "FINISHED"]


def test_the_jobs_of_a_program_are_listed_one_after_another(env, caller):
    assert env.generate_sequence(1, 3).count() == 3
    assert sorted(env.from_elements(2, 1).collect()) == [1, 2]
    env.from_elements(0).output(print)
    env.execute("last")
    jobs = caller.get("/jobs/overview")["jobs"][-3:]
    assert [job["name"] for job in jobs] == ["Ekorn Batch Job", "Ekorn Batch Job", "last"]
    assert {job["state"] for job in jobs} == {"FINISHED"} and len({job["jid"] for job in jobs}) == 3


def test_a_running_job_shows_its_tasks_and_is_cancelled_by_rest(env, caller, gate, tmp_path):
    env.from_elements(1, 2).map(held_back).name("held").rebalance().write_as_text(tmp_path / "out")
    client = env.execute_async("slow")
    assert gate.arrived.wait(60)
    job_id = str(client.get_job_id())
    job = caller.get(f"/jobs/{job_id}")
    assert job["state"] == "RUNNING" and job["api"] == "DataSet"
    assert {vertex["status"] for vertex in job["vertices"]} == {"SCHEDULED"}  # this process has no Spark to ask
    assert caller.ask("PATCH", f"/jobs/{job_id}?mode=cancel")[0] == 202
    assert caller.get(f"/jobs/{job_id}/status") == {"status": "CANCELLING"}
    gate.go_on.set()
    with pytest.raises(JobCancelledError):
        client.get_job_execution_result().result(60)
    assert caller.get(f"/jobs/{job_id}")["state"] == "CANCELED"
    assert list(tmp_path.iterdir()) == [], "a cancelled job leaves nothing"


def test_what_needs_checkpoints_is_refused_in_a_sentence(env, caller, gate, tmp_path):
    env.from_elements(1, 2).map(held_back).write_as_text(tmp_path / "out")
    client = env.execute_async("slow")
    assert gate.arrived.wait(60)
    at = f"/jobs/{client.get_job_id()}"
    for method, path, body in (
        ("GET", f"{at}/checkpoints", None),
        ("GET", f"{at}/checkpoints/config", None),
        ("POST", f"{at}/checkpoints", {}),
        ("POST", f"{at}/savepoints", {"target-directory": str(tmp_path)}),
        ("POST", f"{at}/stop", {"targetDirectory": str(tmp_path)}),
        ("PATCH", f"{at}/rescaling?parallelism=3", None),
    ):
        status, answer = caller.ask(method, path, body)
        assert status == 404 and answer["errors"][0].startswith(REFUSED), (method, path, answer)
    with pytest.raises(CheckpointError, match=REFUSED):
        client.trigger_savepoint(str(tmp_path)).result(60)
    assert caller.get("/taskmanagers") == {"taskmanagers": []}
    gate.go_on.set()
    client.get_job_execution_result().result(60)


def test_the_command_line_lists_cancels_and_logs_it(gate, runtime_dir, tmp_path, capsys):
    configuration = Configuration()
    configuration.set_string("ekorn.control.enabled", "true")  # as on Spark
    with on_local_engine():
        env = ExecutionEnvironment(configuration).set_parallelism(2)
        env.from_elements(1, 2).map(held_back).write_as_text(tmp_path / "out")
        client = env.execute_async("listed")
    assert gate.arrived.wait(60)
    assert job_commands.list_jobs(None) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["job", "name", "status"]
    assert line.split()[:3] == [str(client.get_job_id()), "listed", "RUNNING"]
    (found,) = find_jobs(None).jobs
    threading.Thread(target=let_go_once_cancelled, args=(found, gate)).start()
    assert job_commands.cancel(None, "listed", with_savepoint=False, directory=None) == 0
    assert capsys.readouterr().out == "job 'listed' is CANCELED\n"
    assert job_commands.list_jobs(None, "all") == 0
    assert "CANCELED" in capsys.readouterr().out
    assert logs(None, "listed", follow=False) == 0
    said = capsys.readouterr().out
    assert "job 'listed' (" in said and "vertex 0: " in said and "job 'listed' was cancelled after" in said


def let_go_once_cancelled(found, gate):
    until(lambda: found.remote().status() is JobStatus.CANCELLING)
    gate.go_on.set()


def test_a_failed_job_names_the_operator_and_its_restarts(env, caller):
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))

    def fails(value):
        raise OSError("no disk")

    with pytest.raises(JobExecutionError):
        env.from_elements(1, 2).map(fails).name("risky").collect()
    job_id = last_job(caller)
    assert caller.get(f"/jobs/{job_id}/status") == {"status": "FAILED"}
    failures = caller.get(f"/jobs/{job_id}/exceptions")["exceptionHistory"]["entries"]
    assert len(failures) == 2
    assert failures[0]["exceptionName"] == "OSError" and "no disk" in failures[0]["stacktrace"]
    assert "risky" in failures[0]["taskName"] and failures[0]["taskManagerId"] == "(unassigned)"
    (restarts,) = caller.get(f"/jobs/{job_id}/metrics?get=numRestarts")
    assert restarts["value"] == "1"


def test_an_iteration_shows_its_supersteps(env, caller):
    initial = env.from_elements(1, 2, 3).iterate(5)
    assert sorted(initial.close_with(initial.map(lambda n: n + 1)).collect()) == [6, 7, 8]
    iteration = caller.get(f"/jobs/{last_job(caller)}")["vertices"][0]
    assert iteration["supersteps"] == {"current": 5, "most": 5}
    assert iteration["status"] == "FINISHED"
