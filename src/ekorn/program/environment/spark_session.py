"""The check of a Spark session that a program gives to an environment. PySpark is not imported for it."""

from __future__ import annotations

from typing import Any

__all__ = ["checked_session"]


def checked_session(session: Any) -> Any:
    """Return the session.

    Raises:
        TypeError: It is not a Spark session, or it is one of Spark Connect.
    """
    bases = {f"{base.__module__}.{base.__qualname__}" for base in type(session).__mro__}
    if "pyspark.sql.connect.session.SparkSession" in bases:
        raise TypeError(
            "spark is a Spark Connect session, which cannot run RDDs: jobs need a session with a SparkContext in this "
            "process, as SparkSession.builder.master(...).getOrCreate() makes it"
        )
    if "pyspark.sql.session.SparkSession" not in bases:
        raise TypeError(f"spark must be the SparkSession that runs the jobs, got {session!r}")
    return session
