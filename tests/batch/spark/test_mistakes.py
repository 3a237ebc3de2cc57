"""What a person sees whose DataSet program has a mistake, on Spark: the message, and no frame of the JVM."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PROGRAM = """
from ekorn.dataset import ExecutionEnvironment

env = ExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
env.from_elements("1", "2", "x").map(lambda word: int(word)).name("numbers").print()
"""
SAID = """\
ekorn.errors.JobExecutionError: job 'Ekorn Batch Job' failed in operator 'numbers' (subtask 1) on record 'x': \
ValueError: invalid literal for int() with base 10: 'x'
Traceback (most recent call last):
  File "program.py", line 6, in <lambda>
    env.from_elements("1", "2", "x").map(lambda word: int(word)).name("numbers").print()
ValueError: invalid literal for int() with base 10: 'x'
"""


def test_an_error_of_a_function_is_shown_without_spark_and_its_log_is_kept(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    source = str(Path(__file__).parents[3] / "src")
    ran = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=os.environ | {"PYTHONPATH": source, "SPARK_LOCAL_IP": "127.0.0.1", "TMPDIR": str(tmp_path)},
    )
    assert ran.returncode == 1
    for of_spark in ("org.apache", "py4j", "Py4J", "Caused by", "ekorn-failure", "WARN", "ERROR"):
        assert of_spark not in ran.stderr + ran.stdout
    said = ran.stderr[ran.stderr.index("ekorn.errors.") :].replace(f"{tmp_path}{os.sep}program.py", "program.py")
    lines = [line for line in said.splitlines() if not re.fullmatch(r"\s*[~^][~^ ]*", line)]  # differ between Pythons
    *told, log_line, left_out = lines
    assert told == SAID.splitlines()
    assert "frames" in left_out and "ekorn.errors.frames: all" in left_out
    log = Path(log_line.removeprefix("log: "))
    assert log.is_file(), "the log that the message names outlives the program"
