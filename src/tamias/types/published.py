"""Public paths of classes whose instances users keep in state.

A pickle names a class by its `__module__`. A checkpoint must stay readable after the class has moved to another file,
so these classes are pickled under the public path from which programs import them.
"""

from __future__ import annotations

from typing import Any


def publish(path: str, *objects: Any) -> None:
    """Set the `__module__` of classes and functions to `path`, the module that re-exports them."""
    for each in objects:
        each.__module__ = path
