"""Delta tables (`pip install "ekorn[delta]"`): on a file system that all slots reach under the same path, or on S3."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from ekorn.clock import SystemClock
from ekorn.columns.arrow_columns import arrow_column
from ekorn.connectors.files.file_addresses import input_address
from ekorn.connectors.formats.parquet_files import ParquetBulkWriters
from ekorn.connectors.lakes.data_files import DataFile, DataFileWriter, PartitionedWriter, with_column_writers
from ekorn.connectors.lakes.data_folders import DataFolder, RemoteFolder, SharedFolder
from ekorn.connectors.lakes.lake_source import ArrowRowReader, LakeSource, checked_names
from ekorn.connectors.lakes.table_partitions import DeltaPartitions
from ekorn.errors import ConfigurationError
from ekorn.extras import load
from ekorn.faults import point
from ekorn.functions.sink_contract import CommitId, GlobalCommitter, GloballyCommittedSink, SinkWriter, WriterContext
from ekorn.functions.source_contract import Split, SplitReader
from ekorn.storage.locations import masked, options_of, scheme_of, secrets_of, shown
from ekorn.types.data_type_info import checked_row_type
from ekorn.types.data_types import RowType

__all__ = ["DeltaLocation", "DeltaSink", "DeltaSource", "load_delta"]

_S3 = ("s3", "s3a")


class DeltaSink(GloballyCommittedSink[Any]):
    """Appends rows to a Delta table: every row once, one version of the table per checkpoint.

    DeltaSink("/lake/orders", DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT())]))

    The table is created if it does not exist.
    """

    def __init__(
        self, table_path: str | os.PathLike[str], row_type: RowType, partition_by: Sequence[str] | None = None
    ) -> None:
        """Create the table if it does not exist; otherwise check that it has these columns.

        Args:
            table_path: The folder of the table, as a path or as a URL of S3.
            row_type: The columns of the table and their types.
            partition_by: The names of the columns by whose values the table is partitioned. None takes those of the
                table, or none for a new one.
        """
        self._location = DeltaLocation.of(table_path, "DeltaSink")
        fields = checked_row_type(row_type, "DeltaSink()")
        pa = load("delta", "a Delta table", "pyarrow")
        wanted = pa.schema(
            [
                pa.field(each.name, arrow_column(each.data_type, utc=True).type, each.data_type.is_nullable)
                for each in fields
            ]
        )
        by = DeltaPartitions(fields, partition_by).columns if partition_by else ()  # raises for a wrong column
        delta = load_delta()
        options = self._location.options
        delta.DeltaTable.create(self._location.url, wanted, "ignore", partition_by=list(by), storage_options=options)
        table = self._location.table()
        found, declared = table.schema().to_json(), delta.Schema.from_arrow(wanted).to_json()
        if _columns(found) != _columns(declared):
            raise ConfigurationError(
                f"DeltaSink cannot write {self._location.url!r}: the table has the columns {_columns(found)}, "
                f"the row type has {_columns(declared)}"
            )
        of_table = tuple(table.metadata().partition_columns)
        if partition_by is not None and by != of_table:
            raise ConfigurationError(
                f"DeltaSink cannot write {self._location.url!r}: the table is partitioned by {list(of_table)}, not by "
                f"{list(by)}"
            )
        self._partitions = DeltaPartitions(fields, of_table) if of_table else None
        stored = fields if self._partitions is None else self._partitions.stored
        self._factory = ParquetBulkWriters.for_row_type(stored, utc_timestamp=True)

    def with_columns(self, row_type: RowType) -> DeltaSink | None:
        """Return this sink for batches of columns, if their types are those of the table."""
        return with_column_writers(self, row_type)

    def create_writer(self, context: WriterContext, restored: Sequence[Any]) -> SinkWriter[Any, DataFile]:
        """Create the writer of one subtask."""
        new_writer = partial(DataFileWriter, self._location.folder(), self._factory, context.subtask_index)
        if self._partitions is None:
            return new_writer()
        return PartitionedWriter(self._partitions, new_writer, self._factory.column_check)

    def create_global_committer(self) -> GlobalCommitter[DataFile]:
        """Create the committer."""
        return _DeltaCommitter(self._location, () if self._partitions is None else self._partitions.columns)

    def __repr__(self) -> str:
        return f"DeltaSink({self._location.url!r})"


class _DeltaCommitter(GlobalCommitter[DataFile]):
    """Adds files to the table. The version of an application transaction of the table shows what was added."""

    def __init__(self, location: DeltaLocation, partition_columns: Sequence[str]) -> None:
        self._location = location
        self._partition_columns = partition_columns

    def commit(self, commit_id: CommitId, committables: Sequence[DataFile]) -> None:
        delta = load_delta()
        table, application = self._location.table(), f"ekorn-{commit_id.lineage}"
        last = table.transaction_version(application)
        if last is not None and last >= commit_id.number:
            return
        point("lake-commit")
        # Delta refuses the second of two commits of one application that run at the same time.
        properties = delta.CommitProperties(app_transactions=[delta.Transaction(application, commit_id.number)])
        table.create_write_transaction(
            [self._added(file) for file in committables],
            "append",
            table.schema(),
            partition_by=list(self._partition_columns) or None,
            commit_properties=properties,
        )
        point("lake-committed")

    def _added(self, file: DataFile) -> Any:
        from deltalake.transaction import AddAction

        stats = json.dumps({"numRecords": file["row_count"]})
        # All files are in the table's own folder. Their partitions are in the log, not in the names of folders.
        name = file["path"].rpartition("/")[2]
        partition = dict(zip(self._partition_columns, file.get("partition", ()), strict=True))
        return AddAction(name, file["size_bytes"], partition, SystemClock().now_ms(), True, stats)


class DeltaSource(LakeSource):
    """Reads a version of a Delta table once. Files are read at the same time."""

    def __init__(
        self,
        table_path: str | os.PathLike[str],
        version: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        as_columns: bool = False,
    ) -> None:
        """List the files of a version of the table.

        Args:
            table_path: The folder of the table, as a path or as a URL of S3.
            version: The version; None is the newest one.
            columns: The names of the columns to read; None reads all of them.
            as_columns: Whether the stream has columns instead of rows.
        """
        self._location = DeltaLocation.of(table_path, "DeltaSource")
        self._as_columns = as_columns
        dataset, self._version = _dataset(self._location, version)
        self._names = checked_names(columns, dataset.schema.names, "DeltaSource")
        schema = load("delta", "a Delta table", "pyarrow").schema([dataset.schema.field(n) for n in self._names])
        files = sorted(fragment.path for fragment in dataset.get_fragments())
        super().__init__(schema, files, as_columns=as_columns)

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open a file at its first row, or behind the rows that an earlier reader has read."""
        return _FileReader(self, split.what, position)

    def __repr__(self) -> str:
        return f"DeltaSource({self._location.url!r}, {self._version})"


class _FileReader(ArrowRowReader):
    def __init__(self, source: DeltaSource, file: str, position: Any | None) -> None:
        super().__init__(file, position, as_columns=source._as_columns)
        self._source = source
        self._file = file

    def open_batches(self) -> Iterator[Any]:
        dataset, _ = _dataset(self._source._location, self._source._version)
        fragment = next(each for each in dataset.get_fragments() if each.path == self._file)
        return iter(fragment.to_batches(schema=dataset.schema, columns=self._source._names))


def _dataset(location: DeltaLocation, version: int | None) -> tuple[Any, int]:
    delta = load_delta()
    try:
        table = location.table(version)
        return table.to_pyarrow_dataset(), table.version()
    except delta.exceptions.DeltaError as error:
        text = masked(str(error), location.secrets)
        raise ConfigurationError(f"DeltaSource cannot read {location.url!r}: {text}") from None


def _columns(schema_json: str) -> dict[str, Any]:
    return {each["name"]: each["type"] for each in json.loads(schema_json)["fields"]}


@dataclass(frozen=True)
class DeltaLocation:
    """The location of a table, for the library deltalake and for the slots that write its files.

    Attributes:
        address: A path, or a URL that may carry credentials and options, as for checkpoints.
    """

    address: str = field(repr=False)

    @classmethod
    def of(cls, table_path: str | os.PathLike[str], taken_by: str) -> DeltaLocation:
        """Return the location that a program gave.

        Raises:
            ConfigurationError: It is neither a path nor a URL of S3.
        """
        address = input_address(table_path, taken_by)
        if scheme_of(address) not in ("", *_S3):
            raise ConfigurationError(
                f"{taken_by} cannot use {shown(address)!r}: give a path, a file:// URL or an s3:// URL"
            )
        return cls(address)

    @property
    def url(self) -> str:
        """The location for deltalake and for people, without credentials."""
        return shown(self.address)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts that no message may contain."""
        return secrets_of(self.address)

    @property
    def options(self) -> dict[str, str] | None:
        """The options that deltalake needs besides the URL. Options that the address lacks come from the environment.

        >>> DeltaLocation("s3://key:s%2Fcret@lake/t?scheme=http&endpoint_override=localhost:9000").options
        ... # doctest: +NORMALIZE_WHITESPACE
        {'AWS_ACCESS_KEY_ID': 'key', 'AWS_SECRET_ACCESS_KEY': 's/cret', 'AWS_ENDPOINT_URL': 'http://localhost:9000',
         'AWS_ALLOW_HTTP': 'true'}
        """
        if scheme_of(self.address) not in _S3:
            return None
        said = options_of(self.address)
        found: dict[str, str] = {}
        user, _, _ = urlsplit(self.address).netloc.rpartition("@")
        if user:
            key, _, secret = user.partition(":")
            found |= {"AWS_ACCESS_KEY_ID": unquote(key), "AWS_SECRET_ACCESS_KEY": unquote(secret)}
        if "region" in said:
            found["AWS_REGION"] = said["region"]
        if "endpoint_override" in said:
            scheme = said.get("scheme", "https")
            found["AWS_ENDPOINT_URL"] = f"{scheme}://{said['endpoint_override']}"
            if scheme == "http":
                found["AWS_ALLOW_HTTP"] = "true"
        return found

    def table(self, version: int | None = None) -> Any:
        """Open the table at a version; None is the newest."""
        return load_delta().DeltaTable(self.url, version=version, storage_options=self.options)

    def folder(self) -> DataFolder:
        """Return the folder of the table for files."""
        return RemoteFolder(self.address) if scheme_of(self.address) else SharedFolder(self.address)


def load_delta() -> Any:
    """Return the package deltalake.

    Raises:
        ConfigurationError: It is not installed.
    """
    return load("delta", "a Delta table")
