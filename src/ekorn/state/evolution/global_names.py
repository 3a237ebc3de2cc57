"""The names of classes and functions in checkpoints."""

from __future__ import annotations

import importlib
from typing import Any


def name_of(global_object: Any) -> str:
    """Return the name of a class or function in checkpoints: `module:qualified.name`."""
    return f"{global_object.__module__}:{global_object.__qualname__}"


def find_global(module: str, qualified_name: str) -> Any:
    """Return the class or function of a name.

    Raises:
        LookupError: There is no such class or function; the message says why.
    """
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # a module may raise anything when it is imported
        raise LookupError(f"module {module!r} cannot be imported ({type(error).__name__}: {error})") from error
    for part in qualified_name.split("."):
        if not hasattr(found, part):
            raise LookupError(f"module {module!r} has no {qualified_name!r}")
        found = getattr(found, part)
    return found
