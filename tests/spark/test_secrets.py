"""What Spark gets to see of a job: no credential of a checkpoint or savepoint address, wherever Spark keeps things.

Spark's Python workers run under `recording_daemon`, so every byte of every task is searched. Commands, environments,
logs, event logs and work folders are searched while the job runs and after its end.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.s3_server import ACCESS_KEY, SECRET_KEY, s3_endpoint, s3_url  # noqa: F401
from tests.spark import recording_daemon
from tests.spark.processes import ROOT, marked_processes, run_driver
from tests.spark.standalone_cluster import Cluster

CANARIES = [ACCESS_KEY.encode(), SECRET_KEY.encode(), SECRET_KEY.replace("/", "%2F").replace("+", "%2B").encode()]

# The addresses come over standard input: what the user writes on a command line is the user's own.
PROGRAM = """
import json, time
from ekorn.common import Configuration, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy

told = json.loads(input())

def start(name, restored=None):
    conf = Configuration()
    for key, value in told["settings"].items():
        conf.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(conf)
    env.set_parallelism(2)
    env.enable_checkpointing(200)
    env.get_checkpoint_config().set_checkpoint_storage_dir(told["checkpoints"])
    if restored is not None:
        env.set_restore_path(restored)
    source = DataGeneratorSource(lambda n: n, None, RateLimiterStrategy.per_second(500))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "recognisable name").uid("numbers")
    numbers.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).uid("sums").filter(lambda n: False).print()
    client = env.execute_async(name)
    while client.get_progress().checkpoints_completed < 1:
        assert not client.get_job_status().result().name == "FAILED", client.get_job_execution_result().result()
        time.sleep(0.05)
    return client

client = start("first")
client.trigger_savepoint(told["savepoints"]).result()
path = client.stop_with_savepoint(False, told["savepoints"]).result()
name = path.rstrip("/").rpartition("/")[2]
place, _, options = told["savepoints"].partition("?")
client = start("second", f"{place}/{name}?{options}")
print("READY", flush=True)
input()
client.stop_with_savepoint(False, told["savepoints"]).result()
print("ENDED", flush=True)
"""


@contextmanager
def master(kind: str, folder: Path) -> Iterator[str]:
    if kind == "embedded":
        yield "local[2]"
        return
    cluster = Cluster(folder)
    try:
        yield cluster.master
    finally:
        cluster.stop()


def found_in_files(folder: Path) -> list[tuple[str, bytes]]:
    """Return the files below a folder that hold a canary."""
    found = []
    for path in folder.rglob("*"):
        try:
            data = path.read_bytes() if path.is_file() else b""
        except OSError:  # removed meanwhile
            continue
        found += [(str(path.relative_to(folder)), canary) for canary in CANARIES if canary in data]
    return found


def found_in_processes() -> list[tuple[str, bytes]]:
    """Return the command lines and environments that hold a canary, of all processes of this test run."""
    processes = marked_processes()
    assert any("java" in command for command, _ in processes) and len(processes) > 4
    return [(command[:200], canary) for command, told in processes for canary in CANARIES if canary in told]


def run_watched(driver: subprocess.Popen[str], told: object, folder: Path) -> str:
    """Run the program; search while its second job runs; return what the program printed."""
    output = ""
    try:
        assert driver.stdin is not None and driver.stdout is not None
        print(json.dumps(told), file=driver.stdin, flush=True)
        while "READY" not in output:
            line = driver.stdout.readline()
            assert line, output
            output += line
        assert found_in_processes() == []
        assert found_in_files(folder) == []
        output += driver.communicate("\n", timeout=120)[0]
    finally:
        driver.kill()
    assert "ENDED" in output and driver.returncode == 0, output
    return output


@pytest.mark.parametrize("kind", ["embedded", pytest.param("cluster", marks=pytest.mark.soak)])
def test_spark_never_sees_the_credentials_of_a_savepoint(kind: str, s3_url, tmp_path: Path) -> None:  # noqa: F811
    for name in ("recordings", "events", "tmp", "local"):
        (tmp_path / name).mkdir()
    path = f"{ROOT / 'src'}:{ROOT}"
    variables = {recording_daemon.FOLDER: str(tmp_path / "recordings"), "TMPDIR": str(tmp_path / "tmp")}
    with master(kind, tmp_path) as address:
        settings = {
            "spark.master": address,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.cores.max": "4",
            "spark.executor.memory": "512m",
            "spark.python.daemon.module": "tests.spark.recording_daemon",
            "spark.local.dir": str(tmp_path / "local"),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": (tmp_path / "events").as_uri(),
            **{f"spark.executorEnv.{key}": value for key, value in (variables | {"PYTHONPATH": path}).items()},
        }
        told = {"settings": settings, "checkpoints": s3_url("checkpoints"), "savepoints": s3_url("savepoints")}
        output = run_watched(run_driver(PROGRAM, env=variables, stdin=subprocess.PIPE), told, tmp_path)
    assert found_in_files(tmp_path) == []
    assert [canary for canary in CANARIES if canary in output.encode()] == []
    # The search looked where things are: the tasks with their savepoints, the event log, the logs.
    recorded = b"".join(file.read_bytes() for file in (tmp_path / "recordings").iterdir())
    assert recorded.count(b"EpochOrder") > 10
    assert any(b"recognisable name" in file.read_bytes() for file in (tmp_path / "events").rglob("*") if file.is_file())
