"""Decides which completed checkpoints belong to the job's one history, given the drivers that wrote to its directory.

`ownership.py` states the rules.
"""

from __future__ import annotations

from typing import Any

from ekorn.checkpoint.file_names import tombstone_path
from ekorn.checkpoint.owner_files import Start, newest_claim, owner_path, read_owner_file, read_start
from ekorn.storage.file_store import FileStore

__all__ = ["History"]


class History:
    """The history of a job's checkpoint directory.

    A directory without owners (a savepoint's) has no rules. Files are read only as far as a question needs them.
    """

    def __init__(self, store: FileStore) -> None:
        self._store = store
        newest = newest_claim(store)
        self._newest_term = newest.term if newest is not None else None
        self._head = self._start_at_or_below(newest.term) if newest is not None else None

    def holds(self, checkpoint_id: int, term: int) -> bool:
        """Return False for a checkpoint that a replaced driver completed after a newer one had started without it."""
        if self._head is None or term > self._head.term:
            return True
        bound, start = checkpoint_id, self._head
        while term < start.term:
            if start.checkpoint_id is None:
                return False
            bound = min(bound, start.checkpoint_id)
            before = self._before(start)
            if before is None:  # the history is known only up to here
                return checkpoint_id <= bound
            start = before
        return term == start.term and checkpoint_id <= bound

    def is_discarded(self, checkpoint_id: int, term: int) -> bool:
        """Return whether a driver has begun to delete a checkpoint: rule 4.

        Args:
            checkpoint_id: The checkpoint.
            term: The term of the driver that wrote it.
        """
        if self._newest_term is None:
            return False
        for later in range(self._newest_term, term - 1, -1):
            # A driver that started from the checkpoint claimed its term before an earlier one could delete it.
            start = read_start(self._store, later) if later > term else None
            if read_owner_file(self._store, tombstone_path(checkpoint_id, later)) is not None:
                return True
            if start is not None and start.checkpoint_id == checkpoint_id:
                return False
        return False

    def newest_id(self) -> int | None:
        """Return the newest checkpoint that was announced: whatever a listing says, it exists or was lost."""
        completed = self._progress().get("completed")
        if isinstance(completed, int):
            return completed
        return self._head.checkpoint_id if self._head is not None else None

    def publishing_id(self) -> int | None:
        """Return the last checkpoint that the last driver has announced to publish. It may not exist."""
        publishing = self._progress().get("publishing")
        return publishing if isinstance(publishing, int) else None

    def highest_id(self) -> int:
        """Return a number above which no earlier driver will publish a checkpoint, even one that wakes up later."""
        if self._head is None:
            return 0
        known = (self.newest_id(), self.publishing_id(), self._head.first_id - 1)
        return max(number for number in known if number is not None)

    def _progress(self) -> dict[str, Any]:
        if self._head is None:
            return {}
        return read_owner_file(self._store, owner_path("progress", self._head.term)) or {}

    def _before(self, start: Start) -> Start | None:
        if start.checkpoint_term is not None:
            return read_start(self._store, start.checkpoint_term)
        return self._start_at_or_below(start.term - 1)

    def _start_at_or_below(self, term: int) -> Start | None:
        """Return the newest start up to a term. A driver may have claimed a term and ended before it started."""
        found = (read_start(self._store, t) for t in range(term, 0, -1))
        return next((start for start in found if start is not None), None)
