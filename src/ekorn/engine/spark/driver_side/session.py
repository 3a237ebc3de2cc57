"""Runs in the driver: finds the user's Spark session, or starts an embedded one for the jobs."""

from __future__ import annotations

import atexit
import os
import re
import sys
import tempfile
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from ekorn.config.environment_variables import SPARK_MASTER, variable
from ekorn.engine.spark.driver_side.java_process import start_java
from ekorn.engine.spark.driver_side.master_check import check_master
from ekorn.engine.spark.driver_side.own_session import look_at_own_session, warn_of_settings_without_effect
from ekorn.engine.spark.driver_side.worker_daemon import imports_in_advance, set_daemon
from ekorn.errors import DeploymentError
from ekorn.extras import install_command
from ekorn.storage.private_folder import create_private_file
from ekorn.storage.scratch_folders import LocalFolder

_lock = threading.Lock()
_TRACEBACK = "Traceback (most recent call last)"
_RETRIED = re.compile(r".*most recent failure: (Lost task .*? executor [^)]*\): )?")  # how often Spark tried, and where
_LOCAL_DIR = "spark.local.dir"
_UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
# Executors that these start have their temporary files in folders whose paths are too long for a Unix socket.
_WITHOUT_UNIX_SOCKETS = ("yarn", "k8s://")
_started: set[str] = set()  # the applications of the sessions that ekorn started
_sized: set[str] = set()  # those on this machine of which ekorn chose the number of task slots

DEFAULTS = {
    "spark.app.name": "ekorn",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.reuse": "true",
    "spark.ui.retainedJobs": "200",
    "spark.ui.retainedStages": "400",
    "spark.ui.retainedTasks": "2000",
    "spark.cleaner.periodicGC.interval": "5min",
}


class SparkLog:
    """The file of Spark's log in a session that ekorn started. It is removed with the driver unless it is kept.

    The log of a driver that was killed is removed when the next driver of the user starts Spark.
    """

    path: str | None = None
    _folder: LocalFolder | None = None

    @classmethod
    def create(cls) -> None:
        """Create the file, readable for this user alone, in a new folder whose name nobody can predict."""
        cls._folder = LocalFolder(tempfile.gettempdir(), "ekorn-spark-")
        cls.path = os.path.join(cls._folder.path, "spark.log")
        create_private_file(cls.path)  # Spark would create a file that every user can read

    @classmethod
    def keep(cls) -> str | None:
        """Return the path for a message to the user, and keep the file. None if the session is the user's own."""
        if cls._folder is not None:
            cls._folder.keep()
            cls._folder = None
        return cls.path

    @classmethod
    def remove_unless_kept(cls) -> None:
        """Remove the file when the driver ends, if no message named it."""
        if cls._folder is not None:
            cls._folder.close()
            cls._folder = None


class SparkBlocks:
    """The folder of shuffle files, cached blocks and broadcasts in a session that ekorn started on this machine.

    Spark itself would create folders in the temporary directory that every user can read. The folder of a driver that
    was killed is removed when the next driver of the user starts Spark.
    """

    _folder: LocalFolder | None = None

    @classmethod
    def create(cls, settings: dict[str, str], system: Any) -> None:
        """Create the folder and name it in the settings, unless the user names one.

        Args:
            settings: The settings of the session.
            system: Java's class `System` in the started process, which has read Spark's own files and arguments.
        """
        named = settings.get(_LOCAL_DIR) or system.getProperty(_LOCAL_DIR) or system.getenv("SPARK_LOCAL_DIRS")
        if named or not settings["spark.master"].startswith("local"):
            return
        if cls._folder is None:  # the Java process keeps the folder of its first session for the next one
            cls._folder = LocalFolder(tempfile.gettempdir(), "ekorn-blocks-")
        settings[_LOCAL_DIR] = cls._folder.path

    @classmethod
    def remove(cls) -> None:
        """Remove the folder when the driver ends."""
        if cls._folder is not None:
            cls._folder.close()
            cls._folder = None


def spark_context(configuration: dict[str, str], session: Any = None, task_slots: int | None = None) -> Any:
    """Return the running Spark context, or the context of a new session, on this machine unless `spark.master` is set.

    A session of the user is used as it is, and ekorn never stops it.

    Args:
        configuration: The settings of the job; those of Spark are for a new session.
        session: The `SparkSession` that the program names, or None.
        task_slots: The task slots of a new session whose master is not set. None stands for one for each core.

    Raises:
        DeploymentError: PySpark cannot be imported, Spark does not start, or a running session cannot be used.
    """
    with _lock:
        try:
            from pyspark import SparkConf, SparkContext
        except ImportError as error:
            if error.name != "pyspark":  # a package that PySpark needs is missing, or does not fit
                raise DeploymentError(f"PySpark cannot be imported: {error}") from error
            raise DeploymentError(
                f"PySpark is not installed, and jobs run on Spark: {install_command('spark')} (or use your cluster's)"
            ) from error
        running = running_context() if session is None else _context_of(session)
        if running is None:
            return _create(SparkContext, SparkConf, configuration, task_slots)
        if not is_started_by_us(running):
            look_at_own_session(running)
        warn_of_settings_without_effect(running, configuration)
        return running


def running_context() -> Any:
    """Return the Spark context of this process, or None if there is none."""
    # PySpark is not imported for this: if the user has a context, it is imported already. SparkSession.getActiveSession
    # does not help here: the active session belongs to the calling thread.
    pyspark = sys.modules.get("pyspark")
    running = None if pyspark is None else pyspark.SparkContext._active_spark_context
    return running if running is not None and running._jsc is not None else None


def _context_of(session: Any) -> Any:
    context = session.sparkContext
    if context._jsc is None:
        raise DeploymentError("the Spark session that the environment was given has been stopped; give it a new one")
    return context


def is_started_by_us(context: Any) -> bool:
    """Return whether ekorn started the session of a context."""
    return context.applicationId in _started


def is_sized_by_us(context: Any) -> bool:
    """Return whether ekorn started the session of a context, and chose the number of its task slots itself."""
    return context.applicationId in _sized


def expects_cluster(configuration: dict[str, str]) -> bool:
    """Return whether a job with this configuration would run on a cluster: the running session decides, if any."""
    running = running_context()
    master = _named_master(configuration) or "local" if running is None else running.master
    return not master.startswith("local")


def loss_of(context: Any) -> str | None:
    """Return why a session can run no further job, or None if it can."""
    try:
        stopped = context._jsc is None or context._jsc.sc().isStopped()
    except Exception:  # py4j raises many types when nothing answers
        return "its Java process has ended"
    return "it was stopped" if stopped else None


def active_tasks(context: Any, group: str) -> int:
    """Return how many tasks of a job group run now."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
    running = [job for job in jobs if job is not None and job.status == "RUNNING"]
    stages = [tracker.getStageInfo(stage) for job in running for stage in job.stageIds]
    return sum(stage.numActiveTasks for stage in stages if stage is not None)


def unended_tasks(context: Any, groups: Collection[str]) -> int:
    """Return how many tasks of job groups run now, those included that were cancelled and have not ended.

    Spark's status tracker forgets a job that was cancelled, and its numbers may be seconds old. The scheduler knows.
    """
    running, count = context._jsc.sc().taskScheduler().taskIdToTaskSetManager().elements(), 0
    while running.hasMoreElements():
        properties = running.nextElement().taskSet().properties()
        count += properties is not None and properties.getProperty("spark.jobGroup.id") in groups
    return count


def first_line_of(error: Exception) -> str:
    r"""Return the line of Spark's error that says what happened, without the JVM's frames.

    >>> first_line_of(Exception("Job aborted: Task 0 failed 4 times, most recent failure: Lost task 0.3 in "
    ...                         "stage 3.0 (TID 6) (10.0.0.7 executor 2): java.io.IOException: Cannot run program: "))
    'java.io.IOException: Cannot run program'
    >>> first_line_of(Exception("PythonException: thrown from the Python worker: Traceback (most recent call last):\n"
    ...                         "  File 'worker.py', line 9\nImportError: no module\n\n\tat org.apache.spark.api"))
    'ImportError: no module'
    """
    _, traced, frames = str(error).rpartition(_TRACEBACK)
    if traced:  # of a Python worker: what it raised is the first line after the frames
        raised = next((line for line in frames.splitlines()[1:] if line[:1].strip()), "")
        if raised:
            return raised[:300]
    lines = [line.strip() for line in str(error).splitlines()]
    telling = next((line for line in lines if "Exception" in line or "Error" in line), lines[0] if lines else "")
    return _RETRIED.sub("", telling).partition(" at org.apache.")[0][:300].strip(": ")


def tries_tasks_once(master: str) -> bool:
    """Return whether Spark runs no task a second time: `local[2,4]` tries a task four times, as a cluster does.

    >>> [tries_tasks_once(master) for master in ("local", "local[*]", "local[2,4]", "local-cluster[2,1,512]")]
    [True, True, False, False]
    """
    return re.fullmatch(r"local(\[[^,\]]+\])?", master) is not None


def kill_python_processes(context: Any, modules: tuple[str, ...] | None = None) -> None:
    """Kill the Python daemons and workers of an embedded Spark. Their tasks fail; Spark starts a new daemon.

    Args:
        context: Spark's context.
        modules: Only those that import these modules in advance. The first task of another environment would fail once,
            because Spark tells a dead daemon to end workers that have died.
    """
    descendants = context._jvm.java.lang.ProcessHandle.current().descendants().toList()
    for process in descendants:
        is_python = "pyspark.daemon" in process.info().commandLine().orElse("")
        if is_python and (modules is None or imports_in_advance(process.pid(), modules)):
            process.destroyForcibly()


def _named_master(configuration: dict[str, str]) -> str | None:
    return configuration.get("spark.master") or variable(SPARK_MASTER)


def defaults_of(master: str) -> dict[str, str]:
    """Return the settings of a session on a master that the user has not set.

    >>> [_UNIX_SOCKETS in defaults_of(master) for master in ("local[4]", "spark://host:7077", "yarn", "k8s://host")]
    [True, True, False, False]
    """
    # 30 to 50 ms less per epoch than TCP
    return DEFAULTS if master.startswith(_WITHOUT_UNIX_SOCKETS) else DEFAULTS | {_UNIX_SOCKETS: "true"}


def _create(context_class: Any, conf_class: Any, configuration: dict[str, str], task_slots: int | None) -> Any:
    named = _named_master(configuration)
    master = named or f"local[{task_slots or '*'}]"
    settings = defaults_of(master) | {k: v for k, v in configuration.items() if k.startswith("spark.")}
    settings["spark.master"] = master
    check_master(master)
    if "spark.pyspark.python" in settings:  # Spark itself reads the setting in spark-submit alone
        os.environ["PYSPARK_PYTHON"] = settings["spark.pyspark.python"]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if settings["spark.master"].startswith("local"):
        _lighten(settings)
        settings.setdefault("spark.driver.bindAddress", "127.0.0.1")
        settings.setdefault("spark.driver.host", "127.0.0.1")
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # Spark's web page listens on every address without it
        settings.setdefault("spark.shuffle.compress", "false")  # costs more than it saves within one machine
        settings.setdefault("spark.ui.enabled", "false")  # anybody on the machine could end stages there
        settings.setdefault("spark.authenticate", "true")  # Spark makes up the secret itself and keeps it in memory
    else:
        # A task that was cancelled and does not end, because Python hangs on its executor, ends with its executor.
        settings.setdefault("spark.task.reaper.enabled", "true")
        settings.setdefault("spark.task.reaper.killTimeout", "60s")
    _quiet(settings)
    with java_errors_explained(master):
        start_java(context_class, settings)
        set_daemon(settings, context_class._jvm.java.lang.System.getenv("PYTHONPATH"))
        SparkBlocks.create(settings, context_class._jvm.java.lang.System)
        # A SparkSession takes the JVM two seconds. Code that asks for one later gets it with this context.
        context = context_class(conf=conf_class().setAll(settings.items()))
    if master.startswith("spark://") and context.applicationId.startswith(_UNREGISTERED):
        context.stop()  # Spark is stopping it on another thread, and PySpark would keep it
        raise _not_accepted(master)
    _started.add(context.applicationId)
    if not named:
        _sized.add(context.applicationId)
    return context


def _lighten(settings: dict[str, str]) -> None:
    """Turn off the JVM's optimising compiler and its parallel garbage collector: they cost more than they save here.

    The JVM only carries blobs, and half of its time went into compiling code that runs rarely (decision 9). The classes
    that a start loads take 100 MB. By default the JVM would collect garbage after the first 20 MB of them. The user's
    `spark.driver.extraJavaOptions` come later on the command line, and win.
    """
    given = settings.get("spark.driver.extraJavaOptions", "")
    ours = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"
    settings["spark.driver.extraJavaOptions"] = f"{ours} {given}".strip()


def _quiet(settings: dict[str, str]) -> None:
    """Send Spark's log to a file, so that the terminal shows the output of the job alone."""
    SparkLog.create()
    atexit.register(SparkLog.remove_unless_kept)
    atexit.register(SparkBlocks.remove)
    log4j = Path(__file__).with_name("log4j2.properties")
    options = f"-Dlog4j2.configurationFile={log4j.as_uri()} -Dekorn.log={SparkLog.path}"
    given = settings.get("spark.driver.extraJavaOptions", "")
    settings["spark.driver.extraJavaOptions"] = f"{options} {given}".strip()


@contextmanager
def java_errors_explained(master: str) -> Iterator[None]:
    """Turn errors of PySpark and Java that do not say what happened into ones that say what to do."""
    try:
        yield
    except Exception as error:  # the classes of the errors are PySpark's own and differ between versions
        said = str(error)
        if "Java gateway" in said:
            raise DeploymentError(
                "Spark did not start: its Java process ended at once. Spark needs Java 17 or newer: check "
                f"`java -version` and JAVA_HOME; Java's own message is above, Spark's log is {SparkLog.keep()}"
            ) from error
        if any(each in said for each in _GIVEN_UP):
            raise _not_accepted(master) from None
        raise


# What fails in a new context that Spark stops, because no master accepted the application.
_GIVEN_UP = ('"org.apache.spark.SparkEnv$.get()" is null', "stopped SparkContext", "SparkContext was shut down")
_UNREGISTERED = "spark-application-"  # how Spark's ids begin where no master has given one


def _not_accepted(master: str) -> DeploymentError:
    version = import_module("pyspark").__version__
    return DeploymentError(
        f"the Spark master {master!r} answers, but did not accept the application within a minute: check that the "
        f"cluster runs the same version of Spark as this machine ({version}), and that spark.authenticate and its "
        f"secret are the same on both; Spark's log is {SparkLog.keep()}"
    )
