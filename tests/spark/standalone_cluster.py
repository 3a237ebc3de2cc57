"""A real standalone cluster of Spark on this machine: a master and workers on loopback, from the PySpark package."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.servers.ports import free_ports


class Cluster:
    """A master and its workers.

    Args:
        folder: Where the logs and the workers' folders are.
        hosts: The address of each worker. Spark runs a second copy of a task only on another host than the first.
        settings: Settings of Spark for the workers, by key.

    Attributes:
        master: The address of the master.
        settings: Settings that a job needs here: none.
        environment: Variables that a driver needs here: none.
        scratch: The temporary directory of the executors' Python processes, and so of the slots.
    """

    def __init__(
        self,
        folder: Path,
        hosts: Sequence[str] = ("127.0.0.1", "127.0.0.1"),
        settings: dict[str, str] | None = None,
        cores: int = 2,
    ) -> None:
        import pyspark

        self._home = Path(pyspark.__file__).parent
        self._folder = folder
        self.scratch = folder / "tmp"
        self.scratch.mkdir(exist_ok=True)
        self._processes: list[subprocess.Popen[bytes]] = []
        (port,) = free_ports(1)
        self.master = f"spark://127.0.0.1:{port}"
        self.settings: list[str] = []
        self.environment: dict[str, str] = {}
        self._start(
            "master", "org.apache.spark.deploy.master.Master", "-h", "127.0.0.1", "-p", str(port), "--webui-port", "0"
        )
        self._await("master", r"Started daemon|started at|New state: ALIVE")
        properties = folder / "worker.properties"
        properties.write_text("".join(f"{key} {value}\n" for key, value in (settings or {}).items()))
        for number, host in enumerate(hosts, 1):
            worker = [
                "-h",
                host,
                "-c",
                str(cores),
                "-m",
                "1g",
                "-d",
                str(folder / f"work-{number}"),
                "--webui-port",
                "0",
            ]
            worker += ["--properties-file", str(properties), self.master]
            self._start(f"worker-{number}", "org.apache.spark.deploy.worker.Worker", *worker)
        for number in range(1, len(hosts) + 1):
            self._await(f"worker-{number}", r"Successfully registered with master")

    def _start(self, name: str, *command: str) -> None:
        env = os.environ | {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HOME": str(self._home),
            "SPARK_LOG_DIR": str(self._folder),
            "TMPDIR": str(self.scratch),
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen([str(self._home / "bin" / "spark-class"), *command], env=env, stdout=log, stderr=log)
            )

    def _await(self, name: str, pattern: str) -> None:
        limit = time.monotonic() + 150
        log = self._folder / f"{name}.log"
        while not re.search(pattern, log.read_text()):
            assert time.monotonic() < limit, log.read_text()[-2000:]
            time.sleep(0.2)  # polling another process's log

    def worker_pid(self, number: int) -> int:
        """Return the process id of a worker, counted from 1. Its executors are its children."""
        return self._processes[number].pid

    def executor_logs(self) -> dict[str, str]:
        """Return what each executor has logged, by its folder: `work-1/app-.../0`."""
        found = self._folder.glob("work-*/app-*/*/stderr")
        return {str(path.parent.relative_to(self._folder)): path.read_text() for path in sorted(found)}

    def stop(self) -> None:
        """End the workers and the master."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(30)
