"""Files by path or URL: hidden while they are written, visible when the whole job has succeeded.

As in Flink, a sink with one subtask writes a file, and a sink with several writes a directory of files named 1, 2 and
so on. The hidden files lie beside the target. Their names hold the job's id and a random part, so attempts of a task
never share one, and the driver can find files that no result refers to any more. The formats of text are here too: a
line for each record, or a line of columns for each tuple.
"""

from __future__ import annotations

import codecs
import contextlib
import enum
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, cast

from ekorn.batch.outputs.output import SinkSubtask, WriteResult
from ekorn.connectors.files.part_store import LocalParts, PartStore, PartStream
from ekorn.connectors.files.remote_parts import RemoteParts
from ekorn.connectors.formats.schemas import BulkWriterFactory
from ekorn.errors import OutputExistsError, RecordTypeError, preview
from ekorn.storage.file_store import FileStore, open_files
from ekorn.storage.locations import scheme_of, shown, split_last
from ekorn.types.composite_types import TupleTypeInfo
from ekorn.types.record_text import record_file_text
from ekorn.types.row import Row
from ekorn.types.type_information import TypeInformation

__all__ = ["CsvLinesFormat", "FileOutput", "TextLinesFormat", "WriteMode"]


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
        mode: What happens to existing files. The files that a sink overwrites are removed when the job has succeeded.
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
        """Remove existing files if they may be overwritten, and make the hidden files visible."""
        store, name = self._target()
        if self.mode is WriteMode.OVERWRITE and store.exists(name):
            _remove(store, name)
        elif store.exists(name):
            raise OutputExistsError(shown(self.address))  # the target appeared while the job ran
        if parallelism > 1:
            store.make_dirs(name)
        self._parts().publish(result.written for result in sorted(results))
        self._remove_hidden(job_id)

    def abort(self, job_id: str, parallelism: int) -> None:
        """Remove the hidden files."""
        self._remove_hidden(job_id)

    def _remove_hidden(self, job_id: str) -> None:
        """Remove the files of failed attempts. A file that remains does no harm: readers skip it."""
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
    with contextlib.suppress(IsADirectoryError, PermissionError):  # the errors for a directory, on Linux and on macOS
        store.delete(name)
    store.delete_tree(name)


@dataclass(frozen=True)
class TextLinesFormat:
    """Writes a line for each record: what `formatter` returns, or the text of the record."""

    type_info: TypeInformation | None = None
    formatter: Callable[[Any], str] | None = None
    charset: str = "UTF-8"

    def create(self, stream: IO[bytes]) -> _LineWriter:
        return _LineWriter(stream, self._line, self.charset)

    def _line(self, record: Any) -> str:
        if self.formatter is None:
            return record_file_text(self.type_info, record) + "\n"
        text = self.formatter(record)
        if not isinstance(text, str):
            raise TypeError(f"the text formatter must return a str, and returned {preview(text)}")
        return text + "\n"


@dataclass(frozen=True)
class CsvLinesFormat:
    """Writes a line for each tuple: its fields as text, without quotes unless asked for. None is an empty text."""

    line_delimiter: str = "\n"
    field_delimiter: str = ","
    quotes_strings: bool = False
    type_info: TypeInformation | None = None
    charset: str = "UTF-8"

    def create(self, stream: IO[bytes]) -> _LineWriter:
        known = self.type_info
        types = known.get_field_types() if isinstance(known, TupleTypeInfo) else None

        def line(record: Any) -> str:
            if not isinstance(record, (tuple, list, Row)):
                raise RecordTypeError("a tuple", preview(record), "write_as_csv() writes tuples and rows")
            fields = list(record)
            if types is None:
                texts = [self._text(None, field) for field in fields]
            else:
                texts = [self._text(type_info, field) for type_info, field in zip(types, fields, strict=True)]
            return self.field_delimiter.join(texts) + self.line_delimiter

        return _LineWriter(stream, line, self.charset)

    def _text(self, type_info: TypeInformation | None, field: Any) -> str:
        if field is None:
            return ""
        if self.quotes_strings and isinstance(field, str):
            return '"' + field.replace('"', '""') + '"'
        return record_file_text(type_info, field)


class _LineWriter:
    def __init__(self, stream: IO[bytes], line: Callable[[Any], str], charset: str) -> None:
        self._write = stream.write
        self._line = line
        self._encode = codecs.getincrementalencoder(charset)().encode  # writes a byte-order mark once

    def add_element(self, element: Any) -> None:
        self._write(self._encode(self._line(element)))

    def flush(self) -> None:
        pass  # every record is written at once

    def finish(self) -> None:
        pass
