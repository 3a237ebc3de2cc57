"""Slots on a cluster: a Spark job starts them beside the executors, and they register with the driver.

Where a slot lands is Spark's choice and matters for speed only (`engine/slots/registering.py`).
"""

from __future__ import annotations

import socket
import zipfile
from pathlib import Path
from typing import Any

from tamias.config.python_dependencies import PythonDependencies
from tamias.engine.slots.pool import Heartbeat
from tamias.engine.slots.registering import Launch, RegisteringSlots
from tamias.errors import DeploymentError


def cluster_slots(count: int, context: Any, wanted: PythonDependencies, heartbeat: Heartbeat) -> RegisteringSlots:
    """The slots of one job on Spark's cluster; they start with the first deployment."""
    if wanted.archives or wanted.requirements_file or wanted.executable:
        raise DeploymentError(
            "on a cluster the executors' Python is Spark's to choose: instead of archives, requirements and an "
            "executable of the job, use --archives and spark.pyspark.python, or an image that has what you need"
        )
    ship_package(context)
    for file in wanted.files:
        context.addPyFile(file)

    def start_beside_executors(launch: Launch, numbers: list[int]) -> None:
        context.setJobGroup("tamias-slots", f"start {len(numbers)} slots")
        context.parallelize(numbers, len(numbers)).mapPartitions(launch).count()

    host = context.getConf().get("spark.driver.host") or socket.gethostname()
    return RegisteringSlots(count, socket.gethostbyname(host), start_beside_executors, heartbeat)


def ship_package(context: Any) -> None:
    """Send this very package to the executors, so that they run what the driver runs."""
    root = Path(__file__).resolve().parents[2]
    target = Path(context._temp_dir) / "tamias.zip"  # Spark serves it from there until the driver ends
    if target.exists():
        return
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(root.rglob("*")):
            if path.suffix in {".py", ".properties"}:
                archive.write(path, Path("tamias") / path.relative_to(root))
    context.addPyFile(str(target))
