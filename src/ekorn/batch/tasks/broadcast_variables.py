"""Broadcast variables in a task: data sets that a function reads whole.

Spark sends the records once to each worker, and unpickles them once in each. All subtasks of the worker share the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ekorn.errors import InvalidProgramError
from ekorn.functions.data_sets.data_set_functions import BroadcastVariableInitializer

__all__ = ["BroadcastVariables", "shared_name"]

_PREFIX = "variable "
_MOST_KEPT = 64
_initialized: dict[tuple[int, str], tuple[list[Any], Any]] = {}  # by operator and variable: the records, and the result


def shared_name(name: str) -> str:
    """Return the name of a variable among what an operator's tasks share."""
    return _PREFIX + name


class BroadcastVariables:
    """The variables of one operator.

    Args:
        operator_number: The number of the operator in its job.
        operator_name: Its name, for errors.
        shared: What the tasks of the operator share.
    """

    def __init__(self, operator_number: int, operator_name: str, shared: Mapping[str, Any]) -> None:
        self._operator = operator_number
        self._operator_name = operator_name
        self._lists: dict[str, list[Any]] = {
            name[len(_PREFIX) :]: each for name, each in shared.items() if name.startswith(_PREFIX)
        }

    def get(self, name: str) -> list[Any]:
        """Return the records of a variable.

        Raises:
            InvalidProgramError: The operator has no such variable.
        """
        if name not in self._lists:
            known = f", only {', '.join(map(repr, self._lists))}" if self._lists else ""
            raise InvalidProgramError(
                f"operator {self._operator_name!r} has no broadcast variable {name!r}{known}; "
                f"call with_broadcast_set(data_set, {name!r}) on it"
            )
        return self._lists[name]

    def initialized(
        self, name: str, initializer: BroadcastVariableInitializer[Any, Any] | Callable[[list[Any]], Any]
    ) -> Any:
        """Return what an initializer makes of a variable, once for all subtasks of the worker."""
        records = self.get(name)
        key = (self._operator, name)
        known = _initialized.get(key)
        if known is not None and known[0] is records:
            return known[1]
        _initialized.pop(key, None)  # of the superstep before, or of a job that has ended
        if isinstance(initializer, BroadcastVariableInitializer):
            made = initializer.initialize_broadcast_variable(records)
        else:
            made = initializer(records)
        if len(_initialized) >= _MOST_KEPT:
            _initialized.clear()
        _initialized[key] = (records, made)
        return made
