"""Spark's context, which asks the JVM once for each class and each static method that PySpark uses of it.

py4j asks at every use of a name, and each answer takes most of a millisecond. A superstep of an iteration, which is one
Spark job, asks a dozen times.
"""

from __future__ import annotations

from typing import Any

__all__ = ["KnownClassesContext"]


class KnownClassesContext:
    """Spark's context for RDDs: PySpark reaches the JVM by the context of an RDD."""

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
