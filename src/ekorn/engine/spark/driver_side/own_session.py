"""Runs in the driver: looks at a Spark session that the user has started, before a job runs on it.

Requirements of jobs are checked. Other differences from a session that ekorn starts are logged once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ekorn.errors import DeploymentError

_log = logging.getLogger(__name__)
_seen: set[str] = set()  # applications

_OLDEST = (4, 1)
_CHANGED_BY_US = "spark.driver.extraJavaOptions"  # of a session that ekorn started


class _Difference(NamedTuple):
    """A setting whose value matters to a job."""

    key: str
    sparks_default: str
    differs: Callable[[str], bool]
    where: str  # "local", "cluster" or both
    means: str


def _is(value: str) -> Callable[[str], bool]:
    return lambda found: found.lower() == value


_DIFFERENCES = (
    _Difference(
        "spark.python.worker.reuse",
        "true",
        _is("false"),
        "local cluster",
        "every task starts a Python process, so epochs take longer",
    ),
    _Difference(
        "spark.task.cpus", "1", lambda found: found != "1", "local cluster", "every subtask occupies that many cores"
    ),
    _Difference(
        "spark.python.unix.domain.socket.enabled",
        "false",
        _is("false"),
        "local",
        "an epoch takes 30 to 50 ms longer than with true",
    ),
    _Difference(
        "spark.authenticate",
        "false",
        _is("false"),
        "local cluster",
        "anyone who can reach Spark's ports can control it",
    ),
    _Difference(
        "spark.ui.enabled", "true", _is("true"), "local", "anyone who can reach Spark's web page can read its settings"
    ),
    _Difference(
        "spark.task.reaper.enabled",
        "false",
        _is("false"),
        "cluster",
        "an executor on which Python hangs does not end by itself",
    ),
    _Difference(
        "spark.task.maxFailures", "4", _is("1"), "cluster", "the loss of one task fails its epoch, and the job restarts"
    ),
    _Difference("spark.speculation", "false", _is("true"), "cluster", "a task may run twice; its records count once"),
    _Difference(
        "spark.dynamicAllocation.cachedExecutorIdleTimeout",
        "infinity",
        lambda found: found != "infinity",
        "cluster",
        "with dynamic allocation, Spark releases executors whose machines run slots, and the job restarts",
    ),
)


def look_at_own_session(context: Any) -> None:
    """Check a session that the user has started, and log what differs. Does nothing the second time.

    Raises:
        DeploymentError: The session is of a version of Spark on which jobs do not run.
    """
    if context.applicationId in _seen:
        return
    import pyspark  # here: `spark_context` explains a missing PySpark

    problem = version_problem(context.version, pyspark.__version__)
    if problem is not None:
        raise DeploymentError(problem)
    settings = dict(context.getConf().getAll())
    for line in differences(settings, context.master):
        _log.info("your Spark session has %s", line)
    _seen.add(context.applicationId)


def version_problem(spark: str, pyspark: str) -> str | None:
    """Return why jobs do not run on a session of these versions of Spark and of the package PySpark, or None.

    >>> version_problem("4.3.0", "4.3.0")
    >>> version_problem("4.0.1", "4.0.1")
    'the Spark session runs Spark 4.0.1; jobs need 4.1 or newer'
    """
    if _minor(spark) < _OLDEST:
        return f"the Spark session runs Spark {spark}; jobs need {_OLDEST[0]}.{_OLDEST[1]} or newer"
    if _minor(spark) != _minor(pyspark):
        return (
            f"the Spark session runs Spark {spark}, but the driver's package PySpark has version {pyspark}; "
            "install the same version of PySpark, or unset SPARK_HOME if it names another Spark"
        )
    return None


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def differences(settings: Mapping[str, str], master: str) -> list[str]:
    """Return the settings that differ from a session that ekorn starts, each with its consequence.

    >>> differences({"spark.task.cpus": "2", "spark.authenticate": "true", "spark.speculation": "true",
    ...              "spark.ui.enabled": "false", "spark.python.unix.domain.socket.enabled": "true"}, "local[4]")
    ['spark.task.cpus=2: every subtask occupies that many cores']
    """
    where = "local" if master.startswith("local") else "cluster"
    found = [(each, settings.get(each.key, each.sparks_default)) for each in _DIFFERENCES if where in each.where]
    return [f"{each.key}={value}: {each.means}" for each, value in found if each.differs(value)]


def warn_of_settings_without_effect(context: Any, configuration: Mapping[str, str]) -> None:
    """Name the settings of Spark in a job's configuration that its session, which runs already, does not have."""
    given = {key: value for key, value in configuration.items() if key.startswith("spark.") and key != _CHANGED_BY_US}
    if not given:
        return
    settings = dict(context.getConf().getAll())
    ignored = sorted(key for key, value in given.items() if settings.get(key) != value)
    if ignored:
        _log.warning(
            "the Spark session is already running, so these settings of the job have no effect: %s; "
            "set them where the session is created, or let ekorn create it",
            ", ".join(ignored),
        )
