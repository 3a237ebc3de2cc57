"""Notes in a job's directory about savepoints elsewhere that a restart may go back to.

A failed job restores a savepoint that is newer than its last checkpoint, unless checkpoints are preferred. Sinks commit
with the savepoint that a job ends with, so nothing older may be restored after it. The driver notes both kinds for the
driver after it, and deletes a note when a newer checkpoint has replaced the savepoint.
"""

from __future__ import annotations

import json

from ekorn.storage.file_store import FileStore

__all__ = ["SavepointNotes"]

DIRECTORY = "savepoints"


class SavepointNotes:
    """The noted savepoints of one job, by number.

    Args:
        files: The store rooted in the job's checkpoint directory.
    """

    def __init__(self, files: FileStore) -> None:
        self._files = files
        self._addresses: dict[int, str] | None = None  # read once: only the owner of the directory writes notes

    def add(self, checkpoint_id: int, savepoint: FileStore) -> None:
        """Note a savepoint. The note is durable when this returns."""
        addresses = self.addresses()
        body = json.dumps({"checkpoint_id": checkpoint_id, "path": savepoint.url})
        self._files.replace(f"{DIRECTORY}/{checkpoint_id}", body.encode("utf-8"))
        addresses[checkpoint_id] = savepoint.address  # the note itself has the URL without credentials

    def addresses(self) -> dict[int, str]:
        """Return the address of every noted savepoint, as `resolve` takes it; empty if the note cannot be read."""
        if self._addresses is None:
            names = [name for name in self._files.list(DIRECTORY) if name.isdigit()]
            self._addresses = {int(name): self._read(name) for name in names}
        return self._addresses

    def _read(self, name: str) -> str:
        try:
            body = json.loads(self._files.read(f"{DIRECTORY}/{name}"))
        except (FileNotFoundError, ValueError, RecursionError):
            return ""
        path = body.get("path") if isinstance(body, dict) else None
        return path if isinstance(path, str) else ""

    def drop_below(self, checkpoint_id: int) -> None:
        """Delete the notes of savepoints that are older than a checkpoint."""
        addresses = self.addresses()
        for older in [number for number in addresses if number < checkpoint_id]:
            self._files.delete(f"{DIRECTORY}/{older}")
            del addresses[older]

    def delete(self) -> None:
        """Delete all notes, at the end of the job."""
        if self.addresses():
            self._files.delete_tree(DIRECTORY)
            self.addresses().clear()
