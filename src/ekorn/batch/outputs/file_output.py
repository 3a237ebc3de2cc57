"""Files by path or URL: hidden while they are written, visible when the whole job has succeeded.

As in Flink, a sink with one subtask writes a file, and a sink with several writes a directory of files named 1, 2 and
so on. The hidden files lie beside the target. Their names hold the job's id and a random part, so attempts of a task
never share one, and the driver finds those that nobody names any more.
"""

from __future__ import annotations

import contextlib
import enum
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, cast

from ekorn.batch.outputs.output import SinkSubtask, WriteResult
from ekorn.connectors.files.bulk_parts import PartStream
from ekorn.connectors.files.part_store import LocalParts, PartStore
from ekorn.connectors.files.remote_parts import RemoteParts
from ekorn.connectors.formats.schemas import BulkWriterFactory
from ekorn.errors import OutputExistsError
from ekorn.storage.file_store import FileStore, open_files
from ekorn.storage.locations import scheme_of, shown, split_last

__all__ = ["FileOutput", "WriteMode"]


class WriteMode(enum.Enum):
    """What happens to a file or directory that is already there."""

    NO_OVERWRITE = "NO_OVERWRITE"
    OVERWRITE = "OVERWRITE"


@dataclass(frozen=True)
class FileOutput:
    """Writes records to a file, or to the files of a directory.

    Attributes:
        address: The file or directory.
        format: Makes the writer of a file.
        mode: What happens to what is there. What an overwriting sink replaces is removed when the job has succeeded.
    """

    address: str = field(repr=False)  # may hold credentials
    format: BulkWriterFactory
    mode: WriteMode

    def begin(self, parallelism: int) -> None:
        """Raise `OutputExistsError` if the target exists and may not be overwritten."""
        store, name = self._target()
        if self.mode is WriteMode.NO_OVERWRITE and store.exists(name):
            raise OutputExistsError(shown(self.address))

    def write(self, records: Iterable[Any], subtask: SinkSubtask) -> Any:
        """Write the records of a partition to a hidden file."""
        name = self._name()
        visible = name if subtask.parallelism == 1 else f"{name}/{subtask.number + 1}"
        hidden = f"{_hidden_prefix(name, subtask.job_id)}{uuid.uuid4().hex}"
        part = self._parts().begin("", visible, hidden, 0)
        stream = PartStream(part, 0)
        try:
            writer = self.format.create(cast(IO[bytes], stream))
            add = writer.add_element
            for record in records:  # hot
                add(record)
            writer.finish()
            part.make_durable()
        except BaseException:
            stream.dropped = True
            part.delete()
            raise
        return part.pending()

    def commit(self, results: Sequence[WriteResult], job_id: str, parallelism: int) -> None:
        """Remove what is there if it may be overwritten, and make the hidden files visible."""
        store, name = self._target()
        if self.mode is WriteMode.OVERWRITE and store.exists(name):
            _remove(store, name)
        elif store.exists(name):
            raise OutputExistsError(shown(self.address))  # it appeared while the job ran
        if parallelism > 1:
            store.make_dirs(name)
        self._parts().publish(result.written for result in sorted(results))
        self._remove_hidden(job_id)

    def abort(self, job_id: str, parallelism: int) -> None:
        """Remove the hidden files."""
        self._remove_hidden(job_id)

    def _remove_hidden(self, job_id: str) -> None:
        """Remove the files of attempts that did not count. One that stays does no harm: readers skip it."""
        store, name = self._target()
        prefix = _hidden_prefix(name, job_id)
        for each in store.list():
            if each.startswith(prefix):
                with contextlib.suppress(OSError):
                    store.delete(each)

    def _name(self) -> str:
        return split_last(self.address)[1]

    def _target(self) -> tuple[FileStore, str]:
        directory, name = split_last(self.address)
        return open_files(directory), name

    def _parts(self) -> PartStore:
        directory = split_last(self.address)[0]
        return RemoteParts(directory) if scheme_of(directory) else LocalParts(directory)


def _hidden_prefix(name: str, job_id: str) -> str:
    return f".{name}.inprogress.{job_id}."


def _remove(store: FileStore, name: str) -> None:
    with contextlib.suppress(IsADirectoryError, PermissionError):  # what a directory answers, on Linux and on macOS
        store.delete(name)
    store.delete_tree(name)
