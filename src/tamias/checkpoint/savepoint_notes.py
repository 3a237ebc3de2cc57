"""Notes in a job's directory about savepoints elsewhere that a restart may have to go back to.

A savepoint that is newer than the last checkpoint is what a failed job goes back to, unless checkpoints are preferred;
and the one that a job ends with has been heard of by its sinks, so that nothing older will do. The driver remembers
both, and leaves a note for the driver after it. A note is dropped when a newer checkpoint takes its place.
"""

from __future__ import annotations

import json

from tamias.storage.file_store import FileStore

__all__ = ["SavepointNotes"]

DIRECTORY = "savepoints"


class SavepointNotes:
    """Savepoints of one job, by their number.

    Args:
        files: The job's checkpoint directory.
    """

    def __init__(self, files: FileStore) -> None:
        self._files = files
        self._addresses: dict[int, str] | None = None  # read once: nobody else writes here while this driver owns it

    def add(self, checkpoint_id: int, savepoint: FileStore) -> None:
        """Note a savepoint; durable on return."""
        addresses = self.addresses()
        body = json.dumps({"checkpoint_id": checkpoint_id, "path": savepoint.url})
        self._files.replace(f"{DIRECTORY}/{checkpoint_id}", body.encode("utf-8"))
        addresses[checkpoint_id] = savepoint.address  # a note has what may be shown, without credentials

    def addresses(self) -> dict[int, str]:
        """Where they lie, as `resolve` takes it; empty where that cannot be read."""
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
        """A checkpoint has taken the place of all older ones."""
        addresses = self.addresses()
        for older in [number for number in addresses if number < checkpoint_id]:
            self._files.delete(f"{DIRECTORY}/{older}")
            del addresses[older]

    def delete(self) -> None:
        """Forget all of them, at the end of the job."""
        if self.addresses():
            self._files.delete_tree(DIRECTORY)
            self.addresses().clear()
