"""What ends an attempt of a job before its input does, and what an attempt starts from."""

from __future__ import annotations

from dataclasses import dataclass

from tamias.checkpoint.metadata import CheckpointMetadata
from tamias.engine.protocol import Failure
from tamias.storage.file_store import FileStore


class Cancelled(Exception):
    """The job was cancelled: unwinds an attempt."""


class AttemptFailed(Exception):
    """An attempt failed: what happens next is the restart strategy's decision."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


@dataclass(frozen=True)
class Restored:
    """What an attempt starts from."""

    files: FileStore
    metadata: CheckpointMetadata
    ours: bool = False  # taken by this job, by this driver or an earlier one

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"{self.metadata.kind} {self.metadata.checkpoint_id} in {self.files.url}"
