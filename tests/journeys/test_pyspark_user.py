"""A PySpark user's first hour: jobs on the user's own session, with whatever Python its workers have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.users import PROGRAMS, bare_python, environment, golden, older_python, run, user_python
from tests.spark.standalone_cluster import Cluster


@pytest.fixture
def python(tmp_path: Path) -> str:
    return user_python(tmp_path / "user")


def test_jobs_run_on_the_session_of_the_user_and_leave_it_as_it_was(python: str, tmp_path: Path) -> None:
    """The driver's Python is not on the PATH, and the session names a Python for its workers that lacks ekorn."""
    other = bare_python(tmp_path / "other")
    done = run([python, str(PROGRAMS / "own_session.py")], tmp_path, environment(PYSPARK_PYTHON=other))
    assert done.returncode == 0, done.stderr[-4000:]
    said, wanted = golden("own_session", done.stdout, {other: "<other python>", python: "<user's python>"})
    assert said == wanted
    of_job, of_frames = re.findall(r"JOB BEGINS(.*)JOB ENDED(.*)BAR SHOWN", done.stderr, re.DOTALL)[0]
    assert "[Stage" not in of_job
    assert "[Stage" in of_frames


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"), hosts=["127.0.0.1"])
    yield started
    started.stop()


@pytest.mark.soak  # a minute: CI has half an hour for everything
def test_a_cluster_needs_a_python_of_the_driver_s_version_and_nothing_else(
    python: str, cluster: Cluster, tmp_path: Path
) -> None:
    """The executors' Python lacks ekorn and cloudpickle, and the job runs. Then it has another version."""
    bare, older = bare_python(tmp_path / "bare"), older_python(tmp_path / "older")
    done = run([python, str(PROGRAMS / "cluster_session.py"), cluster.master, bare, older], tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    names = {bare: "<bare python>", older: "<older python>", python: "<user's python>"}
    said, wanted = golden("cluster_session", done.stdout, names)
    assert said == wanted


@pytest.mark.soak  # a cluster, half a minute: CI has half an hour for everything
def test_the_command_line_names_the_python_that_a_cluster_does_not_have(
    python: str, cluster: Cluster, tmp_path: Path
) -> None:
    missing = str(tmp_path / "no-python")
    (tmp_path / "nuts.py").write_text(
        "from ekorn.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection(['acorn', 'walnut']).print()\n"
        "env.execute('nuts')\n"
    )
    settings = {
        "spark.master": cluster.master,
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.pyspark.python": missing,
        "restart-strategy.type": "exponential-delay",  # no restart helps
    }
    given = [argument for key, value in settings.items() for argument in ("-D", f"{key}={value}")]
    done = run([python, "-m", "ekorn", "run", *given, "nuts.py"], tmp_path)
    assert done.returncode == 1, done.stdout
    starts, ended = re.findall(
        r"^job 'nuts' (?:\([0-9a-f]{32}\) starts on|failed after) .*\n", done.stderr, re.MULTILINE
    )
    reason = done.stderr.replace(starts, "").replace(ended, "")
    said, wanted = golden("cluster_command_line", reason, {missing: "<no python>", python: "<user's python>"})
    assert said == wanted
