"""`InputDependencyConstraint`: how many inputs of a vertex must be ready before it starts."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """ANY starts a vertex when one input is ready, ALL when every input is.

    It exists for programs that name it and has no effect: a level starts when all its inputs are complete.
    """

    ANY = 0
    ALL = 1
