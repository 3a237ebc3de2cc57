"""Notes in a job's directory about savepoints elsewhere that a restart may have to go back to.

A savepoint that is newer than the last checkpoint is what a failed job goes back to, unless checkpoints are preferred;
and the one that a job ends with has been heard of by its sinks, so that nothing older will do. The driver remembers
both, and leaves a note for the driver after it. A note is dropped when a newer checkpoint takes its place.
"""

from __future__ import annotations

import json

from tamias.state.files import FileStore

__all__ = ["SavepointNotes"]

DIRECTORY = "savepoints"


class SavepointNotes:
    """Savepoints of one job, by their number.

    Args:
        files: The job's checkpoint directory.
    """

    def __init__(self, files: FileStore) -> None:
        self._files = files
        self._addresses: dict[int, str] = {}  # of this driver's; a note has what may be shown, without credentials

    def add(self, checkpoint_id: int, savepoint: FileStore) -> None:
        """Note a savepoint; durable on return."""
        body = json.dumps({"checkpoint_id": checkpoint_id, "path": savepoint.url})
        self._files.replace(f"{DIRECTORY}/{checkpoint_id}", body.encode("utf-8"))
        self._addresses[checkpoint_id] = savepoint.address

    def addresses(self) -> dict[int, str]:
        """Where they lie, as `resolve` takes it."""
        found: dict[int, str] = {}
        for name in self._files.list(DIRECTORY):
            if name.isdigit():
                found[int(name)] = self._addresses.get(int(name)) or self._read(name)
        return found

    def _read(self, name: str) -> str:
        try:
            body = json.loads(self._files.read(f"{DIRECTORY}/{name}"))
        except (FileNotFoundError, ValueError):
            return ""
        path = body.get("path") if isinstance(body, dict) else None
        return path if isinstance(path, str) else ""

    def drop_below(self, checkpoint_id: int) -> None:
        """A checkpoint has taken the place of all older ones."""
        for name in self._files.list(DIRECTORY):
            if name.isdigit() and int(name) < checkpoint_id:
                self._files.delete(f"{DIRECTORY}/{name}")
                self._addresses.pop(int(name), None)

    def delete(self) -> None:
        """Forget all of them, at the end of the job."""
        self._files.delete_tree(DIRECTORY)
