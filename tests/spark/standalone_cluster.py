"""A standalone cluster of Spark on this machine: a master and two workers on loopback, from the PySpark package."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from pathlib import Path


class Cluster:
    """A master and its workers."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        self._home = Path(pyspark.__file__).parent
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self._start(
            "master", "org.apache.spark.deploy.master.Master", "-h", "127.0.0.1", "-p", str(port), "--webui-port", "0"
        )
        self._await("master", r"Started daemon|started at|New state: ALIVE")
        for number in (1, 2):
            self._start(
                f"worker-{number}",
                "org.apache.spark.deploy.worker.Worker",
                "-h",
                "127.0.0.1",
                "-c",
                "2",
                "-m",
                "1g",
                "-d",
                str(folder / f"work-{number}"),
                "--webui-port",
                "0",
                self.master,
            )
        for number in (1, 2):
            self._await(f"worker-{number}", r"Successfully registered with master")

    def _start(self, name: str, *command: str) -> None:
        env = os.environ | {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HOME": str(self._home),
            "SPARK_LOG_DIR": str(self._folder),
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen([str(self._home / "bin" / "spark-class"), *command], env=env, stdout=log, stderr=log)
            )

    def _await(self, name: str, pattern: str) -> None:
        limit = time.monotonic() + 90
        log = self._folder / f"{name}.log"
        while not re.search(pattern, log.read_text()):
            assert time.monotonic() < limit, log.read_text()[-2000:]
            time.sleep(0.2)  # polling another process's log

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(30)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
