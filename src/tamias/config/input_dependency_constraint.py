"""When a vertex may start, by how many of its inputs are ready."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """ANY: as soon as one input is ready; ALL: when every input is.

    Kept so that programs naming it run: a level starts when all its inputs are complete, whatever is asked for.
    """

    ANY = 0
    ALL = 1
