"""Public paths of classes whose instances users keep in state.

A pickle names a class by its `__module__`. A checkpoint must be readable after the class has moved to another file, so
these classes are pickled under the public path that programs import them from.
"""

from __future__ import annotations

from typing import Any


def publish(path: str, *objects: Any) -> None:
    """Make classes and functions say that they are defined in the module at `path`, which must re-export them."""
    for each in objects:
        each.__module__ = path
