"""Runs in Spark's Python worker, and in the driver: describes the Python there, so that the two can be compared."""

from __future__ import annotations

import pickle
import platform
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import ekorn


@dataclass(frozen=True, slots=True)
class PythonFacts:
    """An interpreter, and the versions of what our tasks and the slots beside them need."""

    executable: str
    version: str
    ekorn: str
    cloudpickle: str | None  # None: it cannot be imported
    pickle_protocol: int


def python_facts() -> PythonFacts:
    """Return the facts about this process."""
    return PythonFacts(
        executable=sys.executable,
        version=platform.python_version(),
        ekorn=ekorn.__version__,
        cloudpickle=_cloudpickle_version(),
        pickle_protocol=pickle.HIGHEST_PROTOCOL,
    )


def report_facts(partition: Iterable[int]) -> Iterator[PythonFacts]:
    """Yield the facts about the worker that runs a partition."""
    yield python_facts()


def _cloudpickle_version() -> str | None:
    try:
        import cloudpickle
    except ImportError:
        return None
    version: str = cloudpickle.__version__
    return version
