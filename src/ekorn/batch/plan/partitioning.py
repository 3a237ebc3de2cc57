"""How the records of a flow are spread over partitions, and which of that still holds after an operator.

The planner leaves out a shuffle when the records of each key are together already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ekorn.batch.plan.record_keys import FieldKeys, FieldPath, Keys

__all__ = ["ForwardedFields", "Partitioning", "after"]


@dataclass(frozen=True)
class ForwardedFields:
    """The fields that a function copies unchanged: from the path in the input to paths in the output.

    `everything` says that whole records pass unchanged, as through a filter, except for the fields in `changed`.
    """

    moved: Mapping[FieldPath, tuple[FieldPath, ...]] | None = None
    everything: bool = False
    changed: frozenset[FieldPath] = frozenset()

    def of(self, path: FieldPath) -> FieldPath | None:
        """Return where a field of the input is in the output; None if that is not known."""
        if self.everything:
            return None if any(_may_overlap(path, each) for each in self.changed) else path
        for source, targets in (self.moved or {}).items():
            if path[: len(source)] == source and targets:
                return (*targets[0], *path[len(source) :])
        return None


@dataclass(frozen=True)
class Partitioning:
    """Records with equal keys are in one partition, which `partitioner` chose; None stands for the hash of the key."""

    keys: Keys
    partitioner: Any = None

    def keeps_together(self, keys: Keys) -> bool:
        """Return whether records that agree in these keys are in one partition, because they include ours."""
        if isinstance(self.keys, FieldKeys) and isinstance(keys, FieldKeys):
            return set(self.keys.paths) <= set(keys.paths)
        return self.keys == keys

    def is_that_of(self, keys: Keys, partitioner: Any) -> bool:
        """Return whether the partition of each record is the one that a shuffle by these keys would choose."""
        return self.keys == keys and self.partitioner is partitioner


def _may_overlap(one: FieldPath, other: FieldPath) -> bool:
    """Return whether one of two fields may be the other, or a part of it.

    A position and a name may mean one field where the type of the records is not known.
    """
    steps = zip(one, other, strict=False)  # up to the end of the shorter path
    return all(ours == theirs or type(ours) is not type(theirs) for ours, theirs in steps)


def after(partitioning: Partitioning | None, forwarded: ForwardedFields) -> Partitioning | None:
    """Return the partitioning of the records that a function makes; None if it is not known."""
    if partitioning is None or (forwarded.everything and not forwarded.changed):
        return partitioning
    if not isinstance(partitioning.keys, FieldKeys):
        return None
    paths = []
    for path in partitioning.keys.paths:
        moved = forwarded.of(path)
        if moved is None:
            return None
        paths.append(moved)
    return Partitioning(FieldKeys(tuple(paths)), partitioning.partitioner)
