"""A real YARN on this machine: a ResourceManager and a NodeManager on loopback, from the jars of Maven Central."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen
from xml.sax.saxutils import escape

from tests.servers.ports import free_ports
from tests.spark.processes import TEST_RUN

_HERE = Path(__file__).resolve().parent
_LIBRARIES = _HERE.parents[2] / ".services" / "yarn"
_OPENED = ("java.base/java.lang", "java.base/java.util")  # what Hadoop reads by reflection
_PACKAGES = "org.apache.hadoop.yarn.server"


class YarnCluster:
    """A ResourceManager and one NodeManager, which runs the containers as processes of this user.

    Args:
        folder: Where configuration, logs and the folders of the containers are.

    Attributes:
        master: The name of the master for Spark.
        settings: The settings of Spark with which its executors start here.
        environment: The variables with which a driver finds the cluster.
    """

    master = "yarn"

    def __init__(self, folder: Path) -> None:
        import pyspark

        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._configuration = folder / "conf"
        self._configuration.mkdir()
        scheduler, tracker, client, admin, page, localizer, node, node_page = map(str, free_ports(8))
        self._page = f"http://127.0.0.1:{page}/ws/v1/cluster"
        self._write("core-site", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(folder / "tmp")})
        self._write(
            "capacity-scheduler",
            {
                "yarn.scheduler.capacity.root.queues": "default",
                "yarn.scheduler.capacity.root.default.capacity": "100",
                "yarn.scheduler.capacity.maximum-am-resource-percent": "0.8",
            },
        )
        self._write(
            "yarn-site",
            {
                "yarn.resourcemanager.scheduler.class": (
                    f"{_PACKAGES}.resourcemanager.scheduler.capacity.CapacityScheduler"
                ),
                "yarn.resourcemanager.scheduler.address": f"127.0.0.1:{scheduler}",
                "yarn.resourcemanager.resource-tracker.address": f"127.0.0.1:{tracker}",
                "yarn.resourcemanager.address": f"127.0.0.1:{client}",
                "yarn.resourcemanager.admin.address": f"127.0.0.1:{admin}",
                "yarn.resourcemanager.webapp.address": f"127.0.0.1:{page}",
                "yarn.nodemanager.address": f"127.0.0.1:{node}",
                "yarn.nodemanager.localizer.address": f"127.0.0.1:{localizer}",
                "yarn.nodemanager.webapp.address": f"127.0.0.1:{node_page}",
                "yarn.nodemanager.hostname": "127.0.0.1",
                "yarn.nodemanager.resource.memory-mb": "8192",
                "yarn.nodemanager.resource.cpu-vcores": "8",
                "yarn.nodemanager.vmem-check-enabled": "false",
                "yarn.nodemanager.local-dirs": str(folder / "local"),
                "yarn.nodemanager.log-dirs": str(folder / "logs"),
                "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99",
                "yarn.nodemanager.env-whitelist": f"JAVA_HOME,PATH,PYSPARK_PYTHON,PYTHONPATH,{TEST_RUN[0]}",
                "yarn.scheduler.minimum-allocation-mb": "256",
            },
        )
        self.settings = [
            f"spark.yarn.jars=local:{Path(pyspark.__file__).parent}/jars/*",
            "spark.executor.instances=2",
            "spark.executor.cores=2",
            "spark.executor.memoryOverhead=512m",
            "spark.yarn.am.memory=512m",
        ]
        self.environment = {"HADOOP_CONF_DIR": str(self._configuration)}
        libraries = _libraries()
        self._start("resourcemanager", f"{_PACKAGES}.resourcemanager.ResourceManager", libraries)
        self._start("nodemanager", f"{_PACKAGES}.nodemanager.NodeManager", libraries)
        self._await(lambda: '"state":"RUNNING"' in self._asked("nodes"))

    def container_logs(self) -> dict[str, str]:
        """Return what each container has written to its standard error, by its folder."""
        return {str(log.parent.name): log.read_text() for log in sorted((self._folder / "logs").glob("*/*/stderr"))}

    def stop(self) -> None:
        """End both processes, and with them the containers."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(60)

    def _write(self, name: str, properties: dict[str, str]) -> None:
        rows = (f"<property><name>{k}</name><value>{escape(v)}</value></property>" for k, v in properties.items())
        (self._configuration / f"{name}.xml").write_text(f"<configuration>{''.join(rows)}</configuration>")

    def _start(self, name: str, main: str, libraries: Path) -> None:
        opened = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
        options = [*opened, "-Xmx400m", f"-Dhadoop.log.dir={self._folder}"]
        command = ["java", *options, "-cp", f"{self._configuration}:{libraries}/*", main]
        with (self._folder / f"{name}.log").open("wb") as log:
            env = os.environ | self.environment
            self._processes.append(subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=self._folder))

    def _asked(self, path: str) -> str:
        try:
            with urlopen(f"{self._page}/{path}", timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:  # it does not listen yet
            return ""

    def _await(self, holds: Callable[[], bool]) -> None:
        limit = time.monotonic() + 150
        while not holds():
            ended = [each for each in self._processes if each.poll() is not None]
            logs = [log.read_text()[-2000:] for log in sorted(self._folder.glob("*.log"))]
            assert not ended and time.monotonic() < limit, "\n\n".join(logs)
            time.sleep(0.2)  # polling other processes


def _libraries() -> Path:
    """Return the folder of Hadoop's jars, after downloading those that are missing."""
    if not (_LIBRARIES / "complete").exists():
        output = f"-DoutputDirectory={_LIBRARIES}"
        subprocess.run(["mvn", "-q", "-f", str(_HERE / "pom.xml"), "dependency:copy-dependencies", output], check=True)
        (_LIBRARIES / "complete").touch()
    return _LIBRARIES
