"""Public paths of classes whose instances users keep in state.

A pickle names a class by its `__module__`. A checkpoint must stay readable after the class has moved to another file,
so these classes are pickled under the public path from which programs import them.
"""

from __future__ import annotations

import importlib
from typing import Any

_paths: set[str] = set()


def publish(path: str, *objects: Any) -> None:
    """Set the `__module__` of classes and functions to `path`, the module that re-exports them."""
    _paths.add(path)
    for each in objects:
        each.__module__ = path


def load_published() -> None:
    """Import the public paths.

    cloudpickle names a class only if the module of that name is loaded. Otherwise it pickles the class itself, and a
    slot would get a second class `Row`, which is not the one that it imports.
    """
    for path in sorted(_paths):
        importlib.import_module(path)
