"""Classes and functions by name, as checkpoints hold them."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["find_global"]


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
