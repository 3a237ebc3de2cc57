"""The Spark session that jobs run on: the user's own if there is one, else an embedded one made here."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from tamias.config.environment_variables import SPARK_MASTER, variable
from tamias.errors import DeploymentError

_log = logging.getLogger(__name__)
_lock = threading.Lock()

DEFAULTS = {
    "spark.app.name": "tamias",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.unix.domain.socket.enabled": "true",  # 30 to 50 ms less per epoch than TCP
    "spark.python.worker.reuse": "true",
    "spark.ui.retainedJobs": "200",
    "spark.ui.retainedStages": "400",
    "spark.ui.retainedTasks": "2000",
    "spark.cleaner.periodicGC.interval": "5min",
}


class SparkLog:
    """Where Spark's own log goes when the session is ours; removed with the driver unless somebody was told of it."""

    path: str | None = None
    mentioned = False

    @classmethod
    def mention(cls) -> str | None:
        """The path, to be shown to a person: the file stays."""
        cls.mentioned = True
        return cls.path

    @classmethod
    def remove_unless_mentioned(cls) -> None:
        """At the end of the driver."""
        if cls.path is not None and not cls.mentioned:
            Path(cls.path).unlink(missing_ok=True)


def spark_context(configuration: dict[str, str]) -> Any:
    """The running Spark context, or that of a new session: `local[*]` unless `spark.master` says otherwise.

    An existing session is used as it is and never stopped here.
    """
    with _lock:
        try:
            from pyspark import SparkContext
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise DeploymentError(
                "PySpark is not installed; a job runs on Spark: pip install 'tamias[spark]' (or use your cluster's)"
            ) from error
        # Not SparkSession.getActiveSession: that one is the calling thread's.
        running = SparkContext._active_spark_context
        if running is not None and running._jsc is not None:
            return running
        return _create(SparkSession, configuration)


def expects_cluster(configuration: dict[str, str]) -> bool:
    """Whether a session made from this configuration would run on a cluster."""
    return not _master(configuration).startswith("local")


def _master(configuration: dict[str, str]) -> str:
    return configuration.get("spark.master") or variable(SPARK_MASTER) or "local[*]"


def _create(session_class: Any, configuration: dict[str, str]) -> Any:
    settings = DEFAULTS | {k: v for k, v in configuration.items() if k.startswith("spark.")}
    settings["spark.master"] = _master(configuration)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    package_root = str(Path(__file__).resolve().parents[3])
    os.environ["PYTHONPATH"] = os.pathsep.join(
        dict.fromkeys([package_root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    )
    if settings["spark.master"].startswith("local"):
        _lighten(settings)
        settings.setdefault("spark.driver.bindAddress", "127.0.0.1")
        settings.setdefault("spark.driver.host", "127.0.0.1")
        settings.setdefault("spark.shuffle.compress", "false")  # costs more than it saves within one machine
    _quiet(settings)
    builder = session_class.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _java_errors_explained():
        return builder.getOrCreate().sparkContext


def _lighten(settings: dict[str, str]) -> None:
    """Start a JVM that is good at carrying blobs: half of its time went into compiling code that runs rarely.

    What the user gives in `spark.driver.extraJavaOptions` comes later on its command line, and wins.
    """
    given = settings.get("spark.driver.extraJavaOptions", "")
    settings["spark.driver.extraJavaOptions"] = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {given}".strip()


def _quiet(settings: dict[str, str]) -> None:
    """Send Spark's log to a file: a person at a terminal wants to see the job."""
    folder = tempfile.gettempdir()
    SparkLog.path = os.path.join(folder, f"tamias-spark-{os.getpid()}.log")
    atexit.register(SparkLog.remove_unless_mentioned)
    log4j = Path(__file__).with_name("log4j2.properties")
    options = f"-Dlog4j2.configurationFile={log4j.as_uri()} -Dtamias.log={SparkLog.path}"
    given = settings.get("spark.driver.extraJavaOptions", "")
    settings["spark.driver.extraJavaOptions"] = f"{options} {given}".strip()


class _java_errors_explained:
    """PySpark says only that its gateway ended; say what to do about it."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, frames: Any) -> None:
        if error is not None and "Java gateway" in str(error):
            raise DeploymentError(
                "Spark did not start: its Java process ended at once. Spark needs Java 17 or newer: check "
                f"`java -version` and JAVA_HOME; what Java said is above, Spark's log is {SparkLog.mention()}"
            ) from error
