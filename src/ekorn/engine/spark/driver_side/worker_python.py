"""Runs in the driver: decides which Python runs our tasks, and compares it with the driver's before a job starts.

In local mode the tasks run with the driver's own interpreter and import path, as the slots do. A session of the user
may name another Python for its workers (`PYSPARK_PYTHON`), or Spark finds another one on the PATH: this concerns the
user's own functions on DataFrames and RDDs alone. On a cluster the path of the driver's interpreter means nothing.
There Spark chooses the Python, and a small job asks it about itself once for each session.
"""

from __future__ import annotations

import sys
from typing import Any

from ekorn.engine.spark.driver_side.session import SparkLog, first_line_of, loss_of
from ekorn.engine.spark.driver_side.worker_daemon import FOR_LEVELS, task_environment
from ekorn.engine.spark.task_side.python_facts import PythonFacts, python_facts, report_facts
from ekorn.errors import SparkSessionLostError, WorkerPythonError


class KnownClassesContext:
    """Spark's context, which asks the JVM once for each class and each static method that PySpark uses of it.

    py4j asks at every use of a name, and each answer takes most of a millisecond. A superstep of an iteration, which is
    one Spark job, asks a dozen times. PySpark reaches the JVM by the context of an RDD, so this is the context of RDDs.
    """

    def __init__(self, context: Any) -> None:
        self._context = context
        self._jvm = _KnownNames(context._jvm)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


class _KnownNames:
    """The names of the JVM, or of one of its classes: each is looked up once."""

    def __init__(self, names: Any) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        from py4j.java_gateway import JavaClass

        found = getattr(self._names, name)
        if isinstance(found, JavaClass):
            found = _KnownNames(found)
        setattr(self, name, found)
        return found

    def __call__(self, *arguments: Any) -> Any:
        """Make an object of the class."""
        return self._names(*arguments)


_compared: set[str] = set()  # the applications whose workers were compared

_SHOW = "import sys; print(sys.executable); print('.'.join(str(part) for part in sys.version_info[:3]))"


class DriverPythonContext(KnownClassesContext):
    """Spark's context, with the driver's Python for the tasks of all RDDs that are derived from it.

    PySpark sends the interpreter and its environment with every task. The context of the user stays as it is.
    """

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.pythonExec = sys.executable
        self.environment = context._dictToJavaMap(task_environment(context, FOR_LEVELS))


def numbered_partitions(context: Any, count: int) -> Any:
    """Return an RDD of `count` partitions. Its tasks, and those of all RDDs derived from it, run with our Python."""
    rdd = context.parallelize(range(count), count)
    if context.master.startswith("local"):
        rdd.ctx = DriverPythonContext(context)
    return rdd


def compare_pythons(context: Any) -> None:
    """Check that a cluster's Python workers can run our tasks. Runs one small Spark job, once for each session.

    Raises:
        WorkerPythonError: The Python there cannot be started, has another version, or lacks a package.
        SparkSessionLostError: The session can run no job.
    """
    if context.applicationId in _compared:
        return
    driver = python_facts()
    try:
        (worker,) = context.parallelize([0], 1).mapPartitions(report_facts).collect()
    except Exception as error:  # py4j and Spark raise many types
        why = loss_of(context)
        if why is not None:
            raise SparkSessionLostError(why, SparkLog.keep()) from error
        raise _explained(context, driver, error) from error
    problem = difference(driver, worker)
    if problem is not None:
        raise WorkerPythonError(_shown(worker.executable, worker.version), _shown_driver(driver), problem)
    _compared.add(context.applicationId)


def difference(driver: PythonFacts, worker: PythonFacts) -> str | None:
    """Return why a worker's Python cannot run the tasks of a driver's, or None if it can."""
    if _minor(worker.version) != _minor(driver.version):
        return "the versions differ"
    if worker.ekorn != driver.ekorn:
        return f"ekorn is {worker.ekorn} there, and {driver.ekorn} in the driver"
    if worker.cloudpickle is None:
        return "cloudpickle cannot be imported there"
    if driver.pickle_protocol != worker.pickle_protocol:
        return f"the pickle protocol is {worker.pickle_protocol} there, and {driver.pickle_protocol} in the driver"
    return None


def _explained(context: Any, driver: PythonFacts, error: Exception) -> WorkerPythonError:
    """Turn the failure of a task into an error that names the Python, which is run once more, without PySpark."""
    named = context.pythonExec
    try:
        jvm = context._jvm
        single = context._jsc.parallelize(jvm.java.util.ArrayList([""]), 1)
        path, version = list(single.pipe(jvm.java.util.ArrayList([named, "-c", _SHOW])).collect())
    except Exception:  # Spark's error of the task is all that is known
        return WorkerPythonError(repr(named), _shown_driver(driver), f"it cannot be run: {first_line_of(error)}")
    problem = "the versions differ" if _minor(version) != _minor(driver.version) else first_line_of(error)
    return WorkerPythonError(_shown(path, version), _shown_driver(driver), problem)


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]


def _shown_driver(driver: PythonFacts) -> str:
    return _shown(driver.executable, driver.version)


def _shown(path: str, version: str) -> str:
    return f"{path} (Python {version})"
