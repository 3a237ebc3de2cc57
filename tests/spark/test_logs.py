"""Spark's log: a file of this user's alone, under a name that another user can neither predict nor create first."""

import os
import subprocess
import sys
from pathlib import Path

from tests.spark.processes import TEST_RUN

PROGRAM = """
import os, stat, sys, tempfile
from ekorn.engine.spark.driver_side.session import SparkLog, spark_context
predicted = os.path.join(tempfile.gettempdir(), f"ekorn-spark-{os.getpid()}.log")
os.symlink(sys.argv[1], predicted)
os.umask(0o022)
context = spark_context({"spark.ui.enabled": "false", "spark.master": "local[1]"})
context._jvm.org.apache.log4j.LogManager.getLogger("test").warn("a line")
path = SparkLog.path
print("FOUND", oct(os.stat(path).st_mode), oct(os.stat(os.path.dirname(path)).st_mode), "a line" in open(path).read())
context.stop()
"""


# Ends as if it were killed: while the settings of Java are in a file, or once Spark runs.
KILLED = """
import os, signal, sys
from pyspark import SparkContext
from ekorn.engine.spark.driver_side.java_process import start_java
from ekorn.engine.spark.driver_side.session import spark_context


class Killing(dict):
    def items(self):
        os.kill(os.getpid(), signal.SIGKILL)


if sys.argv[1] == "starting":
    start_java(SparkContext, Killing())
context = spark_context({"spark.ui.enabled": "false", "spark.master": "local[1]"})
if sys.argv[1] == "running":
    os.kill(os.getpid(), signal.SIGKILL)
context.stop()
"""


def test_sparks_log_is_private_and_removed_with_the_driver(tmp_path: Path) -> None:
    victim, scratch = tmp_path / "victim", tmp_path / "tmp"
    victim.write_text("mine")
    scratch.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(victim)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"TMPDIR": str(scratch), "PYTHONPATH": os.pathsep.join(sys.path), TEST_RUN[0]: TEST_RUN[1]},
    )
    assert "FOUND 0o100600 0o40700 True" in run.stdout, run.stdout + run.stderr
    assert victim.read_text() == "mine"
    assert [path.name for path in scratch.glob("ekorn-spark-*") if not path.is_symlink()] == []


def test_what_a_killed_driver_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    environment = {"TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path), TEST_RUN[0]: TEST_RUN[1]}

    def left_by(moment: str) -> list[str]:
        run = subprocess.run(
            [sys.executable, "-c", KILLED, moment],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=os.environ | environment,
        )
        assert run.returncode == (0 if moment == "never" else -9), run.stdout + run.stderr
        kinds = ("ekorn-blocks-", "ekorn-spark-", "ekorn-settings-")
        return sorted({kind for kind in kinds for _ in tmp_path.glob(f"{kind}*")})

    assert left_by("starting") == ["ekorn-settings-"]
    assert left_by("running") == ["ekorn-blocks-", "ekorn-spark-"]
    assert left_by("never") == []
