"""Finds state of a checkpoint that the program does not declare, such as a state that was renamed.

Such a state is kept: it stays in later checkpoints, and the operator can declare it again. Nothing reads it meanwhile,
and the state under the new name begins empty, so a hint names both.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable
from typing import Any

from ekorn.operators.operator import RuntimeOperator

__all__ = ["declares_later", "undeclared_text"]

_DECLARE_FIRST = ("open", "initialize_state")  # the methods that run before an operator is looked at
_DECLARING = (
    "get_state",
    "get_list_state",
    "get_map_state",
    "get_reducing_state",
    "get_aggregating_state",
    "get_partitioned_state",
    "get_union_list_state",
    "get_broadcast_state",
    "apply_to_keyed_state",
)


def declares_later(functions: Iterable[Any]) -> bool:
    """Return whether a function may declare state after it was opened: with the first records, or in a timer."""
    return any(
        name not in _DECLARE_FIRST and any(used in _DECLARING for used in method.__code__.co_names)
        for function in functions
        for name, method in inspect.getmembers(type(function), inspect.isfunction)
        if not method.__module__.startswith("ekorn.functions")
    )


def undeclared_text(running: RuntimeOperator) -> str | None:
    """Return the hint about restored state that an operator has not declared; None if there is no such state."""
    undeclared = [name for name in running.undeclared_states() if _is_users(name)]
    if not undeclared:
        return None
    declared = [info.name for info in running.infos() if _is_users(info.name) and info.name not in undeclared]
    new = [name for name in declared if name not in running.restored_names()]
    told = [_about(name, declared, new) for name in sorted(undeclared)]
    return f"{' '.join(told)} The job keeps what is not declared: it stays in later checkpoints, and nothing reads it"


def _about(name: str, declared: list[str], new: list[str]) -> str:
    found = f"the restored checkpoint holds state {name!r}, which the program does not declare"
    if not declared:
        return f"{found}; it declares no state."
    near = difflib.get_close_matches(name, declared, len(declared), 0.0)
    listed = ", ".join(map(repr, near))
    if not new:
        return f"{found}; it declares {listed}."
    likeliest = next(each for each in near if each in new)
    return f"{found}; it declares {listed}. Did you rename {name!r} to {likeliest!r}? Then {likeliest!r} begins empty."


def _is_users(name: str) -> bool:
    """Return whether a state has a name of the program: operators, windows and triggers mark theirs."""
    return not name.startswith("_") and "/" not in name
