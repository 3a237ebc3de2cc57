"""What a service answers about its jobs has Flink's shapes, whether the service or a driver answers."""

import pytest

from ekorn.web.http_client import RefusedRequest
from tests.live_jobs import until
from tests.rest.shapes import ANSWERS, READING, misfits, names_of, with_names

DRAWN = """
from ekorn.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2, 3]).map(lambda n: n).set_parallelism(2).key_by(lambda n: n).reduce(max).print()
env.execute("drawn")
"""


@pytest.fixture
def job(client, programs, tmp_path):
    """A job that takes checkpoints and was rescaled."""
    settings = {"execution.checkpointing.interval": "50 ms", "execution.checkpointing.dir": str(tmp_path / "kept")}
    found = client.submit(programs / "endless.py", settings=settings)
    until(lambda: found.get_progress().checkpoints_completed > 0)
    found.rescale(2).result(60)
    return str(found.get_job_id())


def test_every_answer_of_a_service_has_the_shape_of_flinks(client, job):
    names = names_of(client.web.get, job)
    for path, shape in READING.items():
        assert not misfits(shape, client.web.get(with_names(path, client.web.get, names))), path


def test_metrics_are_combined_over_all_drivers(client, job):
    def are_combined() -> bool:
        (threads,) = client.web.get("/taskmanagers/metrics?get=Status.JVM.Threads.Count&agg=min,sum")
        return bool(threads["sum"] == 2 * threads["min"] > 0)

    until(are_combined)  # both slots are threads of one process, and are asked one after the other
    (one,) = client.web.get(f"/jobs/metrics?get=numRestarts&agg=max&jobs={job}")
    assert one == {"id": "numRestarts", "max": 0.0}
    assert client.web.get(f"/jobs/metrics?get=numRestarts&jobs={'0' * 32}") == []
    with pytest.raises(RefusedRequest, match="unknown aggregation 'most'"):
        client.web.get("/jobs/metrics?agg=most")


def test_an_application_is_cancelled(client, job):
    assert client.web.ask("POST", f"/applications/{job}/cancel").status == 202
    until(lambda: client.web.get(f"/jobs/{job}/status")["status"] == "CANCELED")
    until(lambda: client.jobs()[0]["phase"] == "ENDED")
    for path in ("execution-result", "rescales/overview", "rescales/history"):
        assert not misfits(READING[f"/jobs/{{jobid}}/{path}"], client.web.get(f"/jobs/{job}/{path}")), path


def test_the_plan_of_a_program_is_drawn_and_nothing_runs(client, programs):
    (programs / "drawn.py").write_text(DRAWN)
    program = client.upload(programs / "drawn.py")
    answer = client.web.ask("POST", f"/jars/{program}/plan", {"parallelism": 2}).json()
    assert not misfits(ANSWERS["POST /jars/{jarid}/plan"], answer)
    assert answer["plan"]["name"] == "drawn"
    assert [node["parallelism"] for node in answer["plan"]["nodes"]] == [1, 2, 2]
    assert client.jobs() == []
    broken = programs / "broken.py"
    broken.write_text("raise LookupError('no such shop')")
    with pytest.raises(RefusedRequest, match=r"(?s)exit code 1 and started no job: .*no such shop"):
        client.web.ask("POST", f"/jars/{client.upload(broken)}/plan").json()


def test_a_program_runs_with_what_the_query_says_as_in_flink(client, running, programs):
    program = client.upload(programs / "bounded.py")
    answer = client.web.ask("POST", f"/jars/{program}/run?programArg=5&parallelism=1").json()
    assert not misfits(ANSWERS["POST /jars/{jarid}/run"], answer)
    until(lambda: client.jobs()[0]["phase"] == "ENDED")
    lines = running.service.store.log(answer["jobid"]).read_text().splitlines()
    assert [line for line in lines if line.isdecimal()] == ["5", "10", "15"]
    answer = client.web.ask("POST", f"/jars/{program}/run-application", {"programArgsList": ["6"]}).json()
    assert not misfits(ANSWERS["POST /jars/{jarid}/run-application"], answer)
    until(lambda: client.jobs()[1]["phase"] == "ENDED")
    with pytest.raises(RefusedRequest, match="not true or false"):
        client.web.ask("POST", f"/jars/{program}/run?allowNonRestoredState=perhaps").json()
