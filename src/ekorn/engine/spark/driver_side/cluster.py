"""Runs in the driver: has slots started on the machines that run Spark's tasks.

On a cluster Spark chooses the machines, and the slots register with the driver. Where a slot runs matters for speed
only (`engine/slots/registering_pool.py`): continuous jobs ask Spark to run their tasks there (`pipelined_job.py`).
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import socket
import threading
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle

from ekorn.config.settings.deployment_settings import LinkSettings, PythonDependencies
from ekorn.engine.slots.idle_pools import IDLE_POOLS, PoolKind
from ekorn.engine.slots.link_certificate import certificate_for
from ekorn.engine.slots.registering_pool import RegisteringSlotPool
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.engine.spark.driver_side.session import SparkLog, active_tasks, first_line_of, loss_of
from ekorn.engine.spark.driver_side.worker_python import compare_pythons
from ekorn.engine.spark.task_side.launch_slots import launch_slots
from ekorn.errors import DeploymentError, SparkSessionLostError
from ekorn.slot_protocol.slot_config import DriverContact

_log = logging.getLogger(__name__)
_launches = itertools.count(1)


def cluster_slots(
    count: int, context: Any, dependencies: PythonDependencies, heartbeat: Heartbeat, links: LinkSettings
) -> RegisteringSlotPool:
    """Make the pool of a job's slots on Spark's cluster. The slots start with the first deployment.

    Raises:
        DeploymentError: The job asks for an interpreter, archives or requirements, which only Spark can provide there;
            or its links must be encrypted, and there is no certificate.
    """
    if dependencies.archives or dependencies.requirements_file or dependencies.executable:
        raise DeploymentError(
            "on a cluster, Spark chooses the Python of the executors: instead of archives, requirements and an "
            "executable of the job, use --archives and spark.pyspark.python, or an image that contains what you need"
        )
    settings = context.getConf()
    host = socket.gethostbyname(settings.get("spark.driver.host") or socket.gethostname())
    certificate = certificate_for(links, host)
    if certificate is not None and not encrypts_its_own(settings):
        _log.warning(
            "the links of the job are encrypted, but Spark's own connections are not, and they carry the secret of the "
            "links and the records between stages; set spark.authenticate and spark.network.crypto.enabled"
        )
    ship_package(context)
    compare_pythons(context)
    for file in dependencies.files:
        context.addPyFile(file)

    launcher = SlotLauncher(context)
    return RegisteringSlotPool(
        count, host, launcher.launch, heartbeat, launcher.release, locate=launcher.hosts.get, certificate=certificate
    )


def encrypts_its_own(settings: Any) -> bool:
    """Return whether Spark encrypts the connections between its driver and executors, by these settings of Spark."""
    keys = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
    return any(settings.get(key, "false").lower() == "true" for key in keys)


class SlotLauncher:
    """Starts slots by Spark jobs, and keeps Spark from releasing the executors beside which they run.

    Dynamic allocation releases executors that are idle, but not those that hold cached partitions
    (`spark.dynamicAllocation.cachedExecutorIdleTimeout` is infinite by default). So the partitions of the jobs that
    start slots are cached.

    Args:
        context: Spark's context.
        timeout_s: How long a task that starts a slot may take. If Python hangs on an executor, it takes for ever.

    Attributes:
        hosts: The hosts of the executors beside which slots were started, by the number of the slot.
    """

    def __init__(self, context: Any, timeout_s: float = 120.0) -> None:
        self._context = context
        self._timeout_s = timeout_s
        self.hosts: dict[int, str] = {}
        self._lock = threading.Lock()  # over `_cached`: a restart starts slots beside a rescale that starts others
        self._cached: dict[int, Any] = {}  # by the number of a slot: the RDD with a partition where the slot runs

    def launch(self, driver: DriverContact, numbers: list[int]) -> None:
        """Start the slots with these numbers; return when their processes have been started.

        Raises:
            DeploymentError: Spark could not start the slots, or not in time.
            SparkSessionLostError: The session can run no further job.
        """
        from pyspark import StorageLevel  # here: `spark_context` explains a missing PySpark

        group = f"ekorn-slots-{next(_launches)}"
        self._context.setJobGroup(group, f"start {len(numbers)} slots")
        ended = threading.Event()
        watch = threading.Thread(target=self._cancel_if_it_hangs, args=(group, ended), name=group, daemon=True)
        watch.start()
        try:
            started = self._context.parallelize(numbers, len(numbers)).mapPartitions(partial(launch_slots, driver))
            self._keep(started.persist(StorageLevel.MEMORY_AND_DISK), numbers)
            started.count()
        except Exception as error:  # py4j and Spark raise many types
            why = loss_of(self._context)
            if why is not None:
                raise SparkSessionLostError(why, SparkLog.keep()) from error
            raise DeploymentError(f"Spark could not start {len(numbers)} slots: {first_line_of(error)}") from error
        finally:
            ended.set()
        with contextlib.suppress(Exception):  # the slots run; tasks whose host is not known run anywhere
            self._note_hosts(started, numbers)

    def _keep(self, started: Any, numbers: list[int]) -> None:
        """Keep the RDD of slots that start, and release those whose slots have all been started again elsewhere."""
        with self._lock:
            before = list(self._cached.values())
            self._cached |= dict.fromkeys(numbers, started)
            kept = list(self._cached.values())
        _release([each for each in before if not any(each is other for other in kept)])

    def _note_hosts(self, started: Any, numbers: list[int]) -> None:
        """Note where slots were started: their partitions are cached there."""
        for number in numbers:
            self.hosts.pop(number, None)
        cached = started._jrdd.rdd()
        cached.count()  # Spark looks for cached partitions when a job begins, and those of the job before are new
        spark = self._context._jsc.sc()
        for partition, number in enumerate(numbers):
            locations = spark.getPreferredLocs(cached, partition)
            if locations.size() > 0:
                self.hosts[number] = str(locations.apply(0).host())

    def _cancel_if_it_hangs(self, group: str, ended: threading.Event) -> None:
        """Cancel the Spark job whose tasks run for too long. A job whose tasks wait for executors may wait."""
        while not ended.wait(self._timeout_s):
            with contextlib.suppress(Exception):  # the session is gone, and its job with it
                if active_tasks(self._context, group):
                    _log.warning("starting the slots took more than %.0f s and was cancelled", self._timeout_s)
                    self._context.cancelJobGroup(group)

    def release(self) -> None:
        """Let Spark release the executors."""
        with self._lock:
            cached, self._cached = self._cached, {}
        _release(list(cached.values()))


def _release(rdds: list[Any]) -> None:
    for rdd in {id(each): each for each in rdds}.values():
        with contextlib.suppress(Exception):  # the user may have stopped the session already
            rdd.unpersist()


def ship_package(context: Any) -> None:
    """Send ekorn and cloudpickle of this process to the executors, so that they run the same code as the driver."""
    packages = [Path(__file__).resolve().parents[3], Path(cloudpickle.__file__).resolve().parent]
    target = Path(context._temp_dir) / "ekorn.zip"  # Spark serves the file from there until the driver ends
    if target.exists():
        return
    with zipfile.ZipFile(target, "w") as archive:
        for package in packages:
            for path in sorted(package.rglob("*")):
                if path.suffix in {".py", ".properties"}:
                    archive.write(path, path.relative_to(package.parent))
    context.addPyFile(str(target))


def slots_beside(
    context: Any, count: int, python: PythonDependencies, heartbeat: Heartbeat, links: LinkSettings
) -> SlotPool:
    """Return a pool of slots on the machines that run Spark's tasks. On this machine idle ones are used again."""
    if not context.master.startswith("local"):
        return cluster_slots(count, context, python, heartbeat, links)
    return IDLE_POOLS.take(PoolKind.of_this_driver(count, python, heartbeat))
