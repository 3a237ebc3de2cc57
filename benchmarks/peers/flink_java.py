"""Flink's Java DataStream API: compiles `java/FlinkJobs.java` against the jars that PyFlink brings, and runs it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "java" / "FlinkJobs.java"
_OPENED = ("java.base/java.util", "java.base/java.lang", "java.base/java.time")  # Kryo of Flink looks into them


def run(python: str, workload: str, *, records: int, keys: int, turns: int, parallelism: int = 2) -> dict[str, Any]:
    """Return the seconds of each turn of a workload.

    Args:
        python: The Python of an environment with apache-flink.
        workload: `keyed-count` or `tumbling` of `measuring.py`.
        records: The number of records.
        keys: The number of keys.
        parallelism: The number of subtasks.
        turns: How many times the job runs, in one JVM, after a small one.
    """
    jars = jars_of(python)
    opened = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
    path = f"{compiled(jars)}:{jars}/*"
    command = ["java", *opened, "-Xmx4g", "-cp", path, "FlinkJobs", workload]
    done = subprocess.run(
        [*command, *map(str, (records, keys, parallelism, turns))], capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(f"{' '.join(command)} gave no result:\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def jars_of(python: str) -> Path:
    """Return the folder with the jars of the PyFlink in an environment."""
    ask = "import pyflink, pathlib; print(pathlib.Path(pyflink.__file__).parent / 'lib')"
    return Path(subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip())


def compiled(jars: Path) -> Path:
    """Return the folder with the compiled classes; the source is compiled once for each of its versions."""
    version = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    classes = Path(tempfile.gettempdir()) / f"ekorn-flink-jobs-{version}"
    if not (classes / "FlinkJobs.class").exists():
        subprocess.run(["javac", "-cp", f"{jars}/*", "-d", str(classes), str(SOURCE)], check=True)
    return classes
