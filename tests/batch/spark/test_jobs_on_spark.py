"""A DataSet program on Spark as a job: it is listed with its tasks while it runs, and is cancelled or interrupted."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from ekorn.cli import job_commands
from ekorn.cli.found_jobs import find_jobs
from ekorn.common import IntCounter
from ekorn.dataset import MapFunction
from ekorn.rest.job_socket import JobSocketClient
from tests.live_jobs import until
from tests.program.endless import SOURCE, heed_interrupts


class Held(MapFunction):
    """Lets the first partition pass, and holds the others until a file appears."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def open(self, runtime_context):
        self.seen = IntCounter()
        runtime_context.add_accumulator("seen", self.seen)

    def map(self, value):
        self.seen.add(1)
        if value > 3:
            (self.folder / "arrived").touch()
            until((self.folder / "go on").exists)
        return value


def states(remote, client):
    job = remote.get(f"/jobs/{client.get_job_id()}")
    return [{state: count for state, count in vertex["tasks"].items() if count} for vertex in job["vertices"]]


def test_a_running_job_is_listed_with_its_tasks_and_cancelled(env, runtime_dir, tmp_path, capsys):
    held = env.generate_sequence(1, 6).map(Held(tmp_path)).name("held")
    held.rebalance().write_as_text(tmp_path / "out")
    client = env.execute_async("watched")
    until((tmp_path / "arrived").exists)
    (found,) = [job for job in find_jobs(None).jobs if job.name == "watched"]
    assert found.id == str(client.get_job_id()) and found.status == "RUNNING" and found.socket is not None
    remote = JobSocketClient(found.socket)
    until(lambda: states(remote, client) == [{"FINISHED": 1, "RUNNING": 1}, {"SCHEDULED": 2}])
    at = f"/jobs/{client.get_job_id()}"
    source, sink = remote.get(at)["vertices"]
    assert (source["metrics"]["read-records"], source["metrics"]["write-records"]) == (3, 3)
    assert source["metrics"]["write-bytes"] > 0 == sink["metrics"]["read-bytes"]
    (counted,) = remote.get(f"{at}/accumulators")["user-task-accumulators"]
    assert counted["value"] == "3", "that of the task that has ended"
    assert client.get_progress().records_read == 3

    assert job_commands.cancel(None, "watched", with_savepoint=False, directory=None) == 0
    assert capsys.readouterr().out == "job 'watched' is CANCELED\n"
    assert not (tmp_path / "out").exists()
    (tmp_path / "go on").touch()  # frees Spark's worker for other tests


PROGRAM = """
import sys, time
from pathlib import Path
from ekorn.dataset import ExecutionEnvironment

def slow(value, arrived=sys.argv[1]):
    Path(arrived).touch()
    time.sleep(600)

env = ExecutionEnvironment.get_execution_environment().set_parallelism(2)
env.generate_sequence(1, 4).map(slow).write_as_text(sys.argv[2])
env.execute("interrupted")
"""


def test_ctrl_c_ends_a_program_in_one_line(runtime_dir, tmp_path):
    script, arrived, out = tmp_path / "program.py", tmp_path / "arrived", tmp_path / "out"
    script.write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, "-m", "ekorn", "run", str(script), str(arrived), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        preexec_fn=heed_interrupts,  # noqa: PLW1509 - one system call, which takes no lock
    )
    until(arrived.exists, 120)
    process.send_signal(signal.SIGINT)
    said, complained = process.communicate(timeout=120)
    assert process.returncode == 130
    assert said == ""
    assert complained == (
        "ekorn: Ctrl-C ended job 'interrupted'; its sinks leave nothing, and the next run starts from the beginning\n"
    )
    assert not out.exists()
