"""`WrittenRows`: reads a set of Parquet files that Spark wrote once, and the manifest that makes the set complete.

The manifest is written last and names every file with its size (docs/formats/row-files.md). If a folder has no
manifest, its writer died, and the folder is written again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from ekorn.columns.columns_type import ColumnsTypeInfo
from ekorn.columns.row_columns import RowColumns
from ekorn.connectors.data_frames.parquet_rows import ParquetRows
from ekorn.errors import RowFilesDamaged
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.storage.file_store import FileStore
from ekorn.storage.locations import join, shown
from ekorn.types.data_type_info import row_type_info
from ekorn.types.data_types import RowType
from ekorn.types.type_information import TypeInformation

__all__ = [
    "MANIFEST",
    "Manifest",
    "RowFile",
    "WrittenRows",
    "columns_text",
    "form_of_rows",
    "manifest_bytes",
    "parse_manifest",
    "publish_manifest",
    "read_manifest",
    "row_files_in",
]

MANIFEST = "_ekorn-rows.json"
_VERSION = 1


class RowFile(NamedTuple):
    """A file of rows in a folder."""

    name: str
    size_bytes: int


class Manifest(NamedTuple):
    """A complete set of files, the text of their columns and, for a batch of a Spark source, where it ends."""

    files: tuple[RowFile, ...]
    columns: str
    end_offset: str | None = None


def row_files_in(folder: FileStore) -> tuple[RowFile, ...]:
    """Return the Parquet files that Spark wrote into a folder, in the order of their names."""
    names = [name for name in folder.list() if name.endswith(".parquet") and not name.startswith((".", "_"))]
    return tuple(RowFile(name, folder.size(name)) for name in names)


def columns_text(row_type: RowType) -> str:
    """Return the columns as a manifest holds them, to tell whether two sets have the same columns."""
    return ", ".join(f"{field.name} {field.data_type!r}" for field in row_type)


def publish_manifest(folder: FileStore, files: Sequence[RowFile], row_type: RowType) -> Manifest:
    """Declare the set of files complete."""
    manifest = Manifest(tuple(files), columns_text(row_type))
    folder.publish(MANIFEST, manifest_bytes(manifest))
    return manifest


def manifest_bytes(manifest: Manifest) -> bytes:
    """Return a manifest as it is written."""
    files = [list(file) for file in manifest.files]
    content = {"format": "ekorn-rows", "version": _VERSION, "columns": manifest.columns, "files": files}
    if manifest.end_offset is not None:
        content["end"] = manifest.end_offset
    return json.dumps(content).encode()


def read_manifest(folder: FileStore) -> Manifest | None:
    """Return a complete set of files, or None if the set is not complete.

    Raises:
        RowFilesDamaged: The manifest cannot be read, or is of a later version.
    """
    try:
        data = folder.read(MANIFEST)
    except FileNotFoundError:
        return None
    return parse_manifest(data, f"{folder.url}/{MANIFEST}")


def parse_manifest(data: bytes, where: str) -> Manifest:
    """Return the files that a manifest names.

    Raises:
        RowFilesDamaged: The manifest cannot be read, or is of a later version.
    """
    try:
        content = json.loads(data)
        if content["format"] != "ekorn-rows" or content["version"] != _VERSION:
            raise RowFilesDamaged(where, f"{content['format']} {content['version']}", f"ekorn-rows {_VERSION}")
        files = tuple(RowFile(str(name), int(size)) for name, size in content["files"])
        return Manifest(files, str(content["columns"]), content.get("end"))
    except (ValueError, KeyError, TypeError) as error:
        raise RowFilesDamaged(where, f"{type(error).__name__}: {error}", "a list of files with rows") from None


def form_of_rows(row_type: RowType, *, as_columns: bool) -> TypeInformation:
    """Return the type of a stream of rows, or of the same rows as columns."""
    return ColumnsTypeInfo(RowColumns(row_type).schema) if as_columns else row_type_info(row_type)


class WrittenRows(Source):
    """Reads the files of a folder, each of them a split.

    Attributes:
        address: The folder, with credentials.
    """

    def __init__(self, address: str, row_type: RowType, files: Sequence[RowFile], *, as_columns: bool = False) -> None:
        """Create the source of a complete set of files.

        Args:
            address: The folder, as a path or URL.
            row_type: The columns of the files.
            files: The files, as the manifest names them.
            as_columns: Whether the stream has columns instead of rows. Positions are the same.
        """
        self._as_columns = as_columns
        self.address = address
        self._row_type = row_type
        self._files = tuple(files)

    @property
    def boundedness(self) -> Boundedness:
        """Return BOUNDED."""
        return Boundedness.BOUNDED

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows, or the columns."""
        return form_of_rows(self._row_type, as_columns=self._as_columns)

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return a split for each file. It names the whole address: a job of another id may restore it."""
        root = shown(self.address)
        return [Split(file.name, (f"{root.rstrip('/')}/{file.name}", file.size_bytes)) for file in self._files]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open a file behind the rows that an earlier reader has read."""
        address, size_bytes = split.what
        root = shown(self.address).rstrip("/") + "/"
        if address.startswith(root):
            address = join(self.address, address[len(root) :])  # adds the credentials, which no checkpoint holds
        return _FileReader(address, size_bytes, self._row_type, position or 0, as_columns=self._as_columns)

    def __repr__(self) -> str:
        return f"WrittenRows({shown(self.address)!r}, {len(self._files)} files)"


class _FileReader(SplitReader):
    """Reads one file; its position is the number of rows read. The file is opened by the first read."""

    def __init__(self, address: str, size_bytes: int, row_type: RowType, position: int, *, as_columns: bool) -> None:
        self._as_columns = as_columns
        self._address = address
        self._size_bytes = size_bytes
        self._row_type = row_type
        self._position = position
        self._rows: ParquetRows | None = None
        self._finished = False

    def read(self, max_records: int) -> Batch:
        if self._finished:
            return Batch([])
        if self._rows is None:
            columns = RowColumns(self._row_type)
            self._rows = ParquetRows(
                self._address, columns, self._position, size_bytes=self._size_bytes, as_columns=self._as_columns
            )
        records, count = self._rows.read_records(max_records)
        self._position += count
        self._finished = self._position >= self._rows.count
        return Batch(records)

    def position(self) -> int:
        return self._position

    @property
    def finished(self) -> bool:
        return self._finished

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()
            self._rows = None
