"""Runs the programs on PyFlink and writes their outcomes into `outputs/`.

    python -m tests.recorded.record [name ...]      with the Python of an environment that has apache-flink

Without names, records every program that is new or was changed since its recording; `--all` records all programs again.
The jobs run one after the other in one JVM.
"""

import argparse
import importlib.metadata
import json
import os
import signal
import sys
import tempfile
import time
from typing import Any

from tests.recorded import outcome
from tests.recorded import program as programs


def main() -> int:
    parser = argparse.ArgumentParser(description="record what the programs do on PyFlink")
    parser.add_argument("names", nargs="*", help="programs to record; default: the new and the changed")
    parser.add_argument("--all", action="store_true", help="record every program")
    parser.add_argument("--show", action="store_true", help="print the outcomes, write nothing")
    parser.add_argument("--limit-seconds", type=int, default=90, help="a job that takes longer is a failure")
    options = parser.parse_args()
    try:
        version = importlib.metadata.version("apache-flink")
    except importlib.metadata.PackageNotFoundError:
        sys.exit("recording needs PyFlink: run this module with the Python of an environment that has apache-flink")

    wanted = options.names or [name for name in programs.names() if options.all or is_stale(name)]
    stdout = JobStdout()
    failed = 0
    for name in wanted:
        started = time.monotonic()
        loaded = programs.load(name, "pyflink")
        signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(options.limit_seconds)
        found = outcome.run(loaded, environment(loaded), stdout.take)
        signal.alarm(0)
        if not loaded.ordered and found["outcome"] in ("values", "stdout", "files"):
            found[found["outcome"]].sort()  # recording the program again then changes nothing
        failed += found["outcome"] == "failure"
        recording = {
            "program": name,
            "sha256": programs.sha256(name),
            "pyflink": version,
            "parallelism": loaded.parallelism,
            "mode": loaded.mode,
            "ordered": loaded.ordered,
        } | found
        stdout.say(f"{name} ({time.monotonic() - started:.1f} s)")
        if options.show:
            stdout.say(json.dumps(found, indent=1, ensure_ascii=False))
        else:
            path = programs.OUTPUTS / f"{name}.json"
            path.write_text(json.dumps(recording, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    stdout.say(f"{len(wanted)} programs recorded, {failed} of them failures")
    return 0


def is_stale(name: str) -> bool:
    path = programs.OUTPUTS / f"{name}.json"
    return not path.exists() or json.loads(path.read_text(encoding="utf-8"))["sha256"] != programs.sha256(name)


def environment(program: programs.Program) -> Any:
    from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_python_executable(sys.executable)
    env.set_parallelism(program.parallelism)
    env.set_runtime_mode(RuntimeExecutionMode[program.mode])
    return env


class JobStdout:
    """The standard output of this process and of the JVM that it starts; `say` writes to the terminal instead."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile("w+b")  # noqa: SIM115  lives as long as the process
        self._terminal = os.fdopen(os.dup(1), "w")
        os.dup2(self._file.fileno(), 1)
        self._seen = 0

    def take(self) -> list[str]:
        """Return the lines written since the last call."""
        sys.stdout.flush()
        end = os.fstat(self._file.fileno()).st_size
        data = os.pread(self._file.fileno(), end - self._seen, self._seen)
        self._seen = end
        return data.decode("utf-8").splitlines()

    def say(self, line: str) -> None:
        print(line, file=self._terminal, flush=True)


def _too_long(signum: int, frame: Any) -> None:
    raise TimeoutError("the job did not end in time")


if __name__ == "__main__":
    sys.exit(main())
