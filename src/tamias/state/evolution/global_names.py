"""Classes and functions by the name that a checkpoint knows them by."""

from __future__ import annotations

import importlib
from typing import Any


def name_of(global_object: Any) -> str:
    """How a checkpoint names a class or function: `module:qualified.name`."""
    return f"{global_object.__module__}:{global_object.__qualname__}"


def find_global(module: str, qualified_name: str) -> Any:
    """The class or function of that name.

    Raises:
        LookupError: There is none now; says why.
    """
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # the module may fail in any way when it runs
        raise LookupError(f"module {module!r} cannot be imported ({type(error).__name__}: {error})") from error
    for part in qualified_name.split("."):
        if not hasattr(found, part):
            raise LookupError(f"module {module!r} has no {qualified_name!r}")
        found = getattr(found, part)
    return found
