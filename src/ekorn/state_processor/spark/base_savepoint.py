"""Runs in Spark's driver and in its Python processes: the savepoint that a write is based on, and the new one."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from ekorn.checkpoint.file_names import METADATA
from ekorn.checkpoint.metadata import OperatorMetadata
from ekorn.errors import CheckpointError, StateError
from ekorn.state_processor.reading.stored_savepoint import (
    StoredOperator,
    StoredSavepoint,
    configured_key,
    open_savepoint,
)
from ekorn.state_processor.spark.source_options import SourceOptions
from ekorn.state_processor.writing.new_savepoint import NewSavepoint
from ekorn.storage.file_store import FileStore, open_files

__all__ = ["WrittenSavepoint"]


class WrittenSavepoint:
    """A savepoint that a DataFrame is written to: one operator is new, the others are those of `baseSavepoint`."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def check(self) -> None:
        """Check the arguments of the call.

        Raises:
            CheckpointError: The directory holds files.
            RestoreError: `baseSavepoint` is no savepoint.
        """
        self._base()
        files = self.directory()
        if files.list():
            raise CheckpointError(f"{files.url!r} already contains files: a savepoint is written to a new directory")

    def directory(self) -> FileStore:
        """Open the new directory."""
        return open_files(SourceOptions(self._options, writing=True).path)

    def base_operator(self) -> StoredOperator | None:
        """Return the operator in the savepoint that the new one is based on; None if that savepoint lacks it."""
        base, mine = self._base(), SourceOptions(self._options, writing=True).operator.operator_id
        return None if base is None or base.metadata.operator(mine) is None else base.operator_by_id(mine)

    def publish(self, written: Callable[[NewSavepoint, StoredOperator | None], OperatorMetadata]) -> None:
        """Copy the other operators, and publish the savepoint.

        Args:
            written: Returns the operator that was written, given the new savepoint and the operator in the base.
        """
        base, own = self._base(), self.base_operator()
        number, job_id, job_name = 1, secrets.token_hex(16), "write savepoint"
        if base is not None:
            metadata = base.metadata
            number, job_id, job_name = metadata.checkpoint_id, metadata.job_id, metadata.job_name
        savepoint = NewSavepoint(self.directory(), configured_key(), number, job_id, job_name)
        operator = written(savepoint, own)
        others = [] if base is None else [each for each in base.operators() if each != own]
        savepoint.publish([*savepoint.copied(others), operator])

    def remove(self) -> None:
        """Remove the files of the tasks that succeeded.

        Raises:
            StateError: Another writer has published a savepoint there.
        """
        files = self.directory()
        if files.exists(METADATA):
            raise StateError(f"{files.url!r} holds a savepoint of another writer")
        for name in files.list():
            files.delete(name)

    def _base(self) -> StoredSavepoint | None:
        path = SourceOptions(self._options, writing=True).text("baseSavepoint")
        return open_savepoint(path, configured_key()) if path else None
