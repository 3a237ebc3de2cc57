"""Decides which checkpoints and files of a job are still needed. `checkpoint_directory.py` deletes the others.

A shared file is needed while a retained checkpoint refers to it. No checkpoint refers to the files of checkpoints that
were never completed. Those files are found by listing the directory, not by remembering what was written: the slot
that wrote them may be gone without having reported them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Set
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from ekorn.checkpoint.checkpoint_directory import Listing
from ekorn.checkpoint.file_names import created_for
from ekorn.checkpoint.metadata import CheckpointMetadata

__all__ = ["CheckpointRetentionPolicy", "Deletions", "Retention"]

_LOG = logging.getLogger(__name__)

JobEnd = Literal["FINISHED", "CANCELED", "FAILED", "SUSPENDED"]


class CheckpointRetentionPolicy(Enum):
    """Whether the retained checkpoints outlive the job: Flink's policies, by their names."""

    NEVER_RETAIN_AFTER_TERMINATION = "never"
    RETAIN_ON_FAILURE = "on failure"
    RETAIN_ON_CANCELLATION = "on cancellation"

    def keeps(self, end: JobEnd) -> bool:
        """Return whether checkpoints outlive a job that ends this way.

        >>> CheckpointRetentionPolicy.RETAIN_ON_FAILURE.keeps("CANCELED")
        False
        """
        match self:
            case CheckpointRetentionPolicy.NEVER_RETAIN_AFTER_TERMINATION:
                return False
            case CheckpointRetentionPolicy.RETAIN_ON_FAILURE:
                return end == "FAILED"
            case CheckpointRetentionPolicy.RETAIN_ON_CANCELLATION:
                return end != "FINISHED"


@dataclass(frozen=True, slots=True)
class Deletions:
    """The deletions to make, in this order: checkpoints (`discard`), then files (`delete_files`)."""

    checkpoints: tuple[int, ...] = ()
    files: tuple[str, ...] = ()


class Retention:
    """The retained checkpoints of one job.

    Only checkpoints in the job's own directory are entered. A checkpoint restored from elsewhere belongs to the user
    (Flink: NO_CLAIM), and its files lie in another directory.
    """

    def __init__(self, num_retained: int) -> None:
        if num_retained < 1:
            _LOG.warning("retaining 1 checkpoint instead of %d", num_retained)
        self._num_retained = max(1, num_retained)
        self._retained: dict[int, frozenset[str]] = {}  # by id, oldest first: the files that each refers to
        self._waiting: dict[str, frozenset[int]] = {}  # unreferenced, but these checkpoints in flight may refer to them

    @property
    def retained_ids(self) -> tuple[int, ...]:
        """The retained checkpoints, oldest first."""
        return tuple(self._retained)

    def adopt(self, found: Iterable[CheckpointMetadata]) -> None:
        """Enter the checkpoints that an earlier driver left in the job's directory."""
        for metadata in sorted(found, key=lambda m: m.checkpoint_id):
            self._retained[metadata.checkpoint_id] = metadata.paths()

    def forget(self, checkpoint_id: int) -> None:
        """Stop counting a checkpoint that turned out unreadable. Its files are deleted with the next completion."""
        self._retained.pop(checkpoint_id, None)

    def completed(
        self, metadata: CheckpointMetadata, *, pending: Set[int], listing: Listing, newest_id: int
    ) -> Deletions:
        """Enter a checkpoint that has just become durable; return what is no longer needed.

        Args:
            metadata: The checkpoint.
            pending: The checkpoints in flight.
            listing: The content of the directory, listed after the checkpoint became durable.
            newest_id: The newest checkpoint begun. With several in flight, newer ones may have failed before this one
                completed.
        """
        assert all(metadata.checkpoint_id > older for older in self._retained), "checkpoints complete in order"
        self._retained[metadata.checkpoint_id] = metadata.paths()
        while len(self._retained) > self._num_retained:
            self._retained.pop(next(iter(self._retained)))
        newest = max(metadata.checkpoint_id, newest_id)
        return Deletions(
            checkpoints=tuple(
                i for i in listing.checkpoints if i <= newest and i not in self._retained and i not in pending
            ),
            files=tuple(path for path in listing.shared if self._unneeded(path, newest, pending)),
        )

    def leftovers(self, listing: Listing, *, completed: Set[int], first_id: int) -> Deletions:
        """Return what was in flight when the job ended and will never be completed.

        Args:
            listing: The content of the directory, now that no slot writes to it.
            completed: The checkpoints that have metadata, readable or not. These are kept.
            first_id: The first checkpoint that this driver could begin.
        """
        needed = frozenset().union(*self._retained.values()) if self._retained else frozenset()

        def is_leftover(checkpoint_id: int | None) -> bool:
            return checkpoint_id is not None and checkpoint_id >= first_id and checkpoint_id not in completed

        return Deletions(
            checkpoints=tuple(i for i in listing.checkpoints if is_leftover(i)),
            files=tuple(p for p in listing.shared if p not in needed and is_leftover(created_for(p))),
        )

    def _unneeded(self, path: str, newest: int, pending: Set[int]) -> bool:
        if any(path in paths for paths in self._retained.values()):
            self._waiting.pop(path, None)
            return False
        made_for = created_for(path)
        if made_for is None or made_for > newest or made_for in pending:
            return False  # not a state file of this job, or still being written
        # A checkpoint in flight when the file lost its last reference may have been taken before that, and may refer
        # to the file once it completes.
        blockers = self._waiting.setdefault(path, frozenset(pending))
        if blockers & pending:
            return False
        del self._waiting[path]
        return True
