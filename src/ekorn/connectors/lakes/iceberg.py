"""Iceberg tables (`pip install "ekorn[iceberg]"`): on a file system that all slots share, or where pyiceberg goes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ekorn.columns.arrow_columns import arrow_column
from ekorn.connectors.formats.parquet_files import ParquetBulkWriters
from ekorn.connectors.lakes.data_files import DataFile, DataFileWriter, PartitionedWriter, with_column_writers
from ekorn.connectors.lakes.data_folders import DataFolder, SharedFolder, TableFolder
from ekorn.connectors.lakes.lake_source import ArrowRowReader, LakeSource, checked_names
from ekorn.connectors.lakes.table_partitions import IcebergPartitions
from ekorn.errors import ConfigurationError
from ekorn.extras import load
from ekorn.faults import point
from ekorn.functions.sink_contract import CommitId, GlobalCommitter, GloballyCommittedSink, SinkWriter, WriterContext
from ekorn.functions.source_contract import Split, SplitReader
from ekorn.types.data_type_info import checked_row_type
from ekorn.types.data_types import RowType

__all__ = ["IcebergSink", "IcebergSource"]

_LINEAGE = "ekorn.lineage"
_NUMBER = "ekorn.commit-number"
_TRANSFORMS = ("year", "month", "day", "hour")


@dataclass(frozen=True)
class _Catalog:
    name: str
    properties: dict[str, str] = field(repr=False)  # the properties may hold credentials

    def load(self) -> Any:
        load("iceberg", "an Iceberg table")
        from pyiceberg.catalog import load_catalog

        return load_catalog(self.name, **self.properties)


class IcebergSink(GloballyCommittedSink[Any]):
    """Appends rows to an Iceberg table: every row once, one snapshot of the table per checkpoint.

    IcebergSink("main", {"type": "sql", "uri": "sqlite:////lake/catalog.db"}, "shop.orders", row_type)

    The table is created if it does not exist.
    """

    def __init__(
        self,
        catalog_name: str,
        catalog_properties: Mapping[str, str],
        table_name: str,
        row_type: RowType,
        partition_by: Sequence[str] | None = None,
    ) -> None:
        """Create the table and its namespace if they do not exist; otherwise check that it has these columns.

        Args:
            catalog_name: The name of the catalog. A catalog in a database lists its tables under it.
            catalog_properties: The properties of the catalog, as pyiceberg's `load_catalog` takes them. They are in no
                log, error or checkpoint.
            table_name: The table, with its namespace before a dot.
            row_type: The columns of the table and their types.
            partition_by: The columns by whose values the table is partitioned, or transforms of columns: ``year(at)``,
                ``month(at)``, ``day(at)``, ``hour(at)``. None takes those of the table, or none for a new one.
        """
        self._catalog = _Catalog(catalog_name, dict(catalog_properties))
        self._name = table_name
        fields = checked_row_type(row_type, "IcebergSink()")
        self._factory = ParquetBulkWriters.for_row_type(fields, utc_timestamp=True)
        pa = load("iceberg", "an Iceberg table", "pyarrow")
        wanted = pa.schema(
            [
                pa.field(each.name, arrow_column(each.data_type, utc=True).type, each.data_type.is_nullable)
                for each in fields
            ]
        )
        catalog = self._catalog.load()
        catalog.create_namespace_if_not_exists(table_name.rpartition(".")[0])
        table = _created(catalog, table_name, wanted, partition_by or ())
        found = _columns(table.schema().as_arrow())
        if found != _columns(wanted):
            raise ConfigurationError(
                f"IcebergSink cannot write {table_name!r}: the table has the columns {found}, "
                f"the row type has {_columns(wanted)}"
            )
        _check_partitions(table, table_name, partition_by)
        self._partitions = IcebergPartitions(fields, table) if table.spec().fields else None
        self._data = f"{table.location().rstrip('/')}/data"

    def with_columns(self, row_type: RowType) -> IcebergSink | None:
        """Return this sink for batches of columns, if their types are those of the table."""
        return with_column_writers(self, row_type)

    def create_writer(self, context: WriterContext, restored: Sequence[Any]) -> SinkWriter[Any, DataFile]:
        """Create the writer of one subtask."""
        new_writer = partial(DataFileWriter, self._folder(), self._factory, context.subtask_index)
        if self._partitions is None:
            return new_writer()
        return PartitionedWriter(self._partitions, new_writer, self._factory.column_check)

    def _folder(self) -> DataFolder:
        parts = urlsplit(self._data)
        if parts.scheme in ("", "file"):
            return SharedFolder(url2pathname(parts.path))
        return TableFolder(self._catalog.load().load_table(self._name).io, self._data)

    def create_global_committer(self) -> GlobalCommitter[DataFile]:
        """Create the committer."""
        return _IcebergCommitter(self._catalog, self._name)

    def __repr__(self) -> str:
        return f"IcebergSink({self._name!r})"


class _IcebergCommitter(GlobalCommitter[DataFile]):
    """Adds files to the table. Properties of the snapshots show what was added."""

    def __init__(self, catalog: _Catalog, name: str) -> None:
        self._catalog = catalog
        self._name = name

    def commit(self, commit_id: CommitId, committables: Sequence[DataFile]) -> None:
        table = self._catalog.load().load_table(self._name)
        for snapshot in reversed(table.metadata.snapshots):
            said = snapshot.summary.additional_properties if snapshot.summary is not None else {}
            if said.get(_LINEAGE) == commit_id.lineage and int(said[_NUMBER]) >= commit_id.number:
                return
        point("lake-commit")
        # The catalog refuses the second of two commits that start from the same snapshot.
        table.add_files(
            [f"file://{path}" if path.startswith("/") else path for path in (file["path"] for file in committables)],
            snapshot_properties={_LINEAGE: commit_id.lineage, _NUMBER: str(commit_id.number)},
        )
        point("lake-committed")


class IcebergSource(LakeSource):
    """Reads a snapshot of an Iceberg table once. Files are read at the same time."""

    def __init__(
        self,
        catalog_name: str,
        catalog_properties: Mapping[str, str],
        table_name: str,
        snapshot_id: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        as_columns: bool = False,
    ) -> None:
        """List the files of a snapshot.

        Args:
            catalog_name: The name of the catalog.
            catalog_properties: The properties of the catalog, as pyiceberg's `load_catalog` takes them.
            table_name: The table, with its namespace before a dot.
            snapshot_id: The snapshot; None is the newest one.
            columns: The names of the columns to read; None reads all of them.
            as_columns: Whether the stream has columns instead of rows.
        """
        self._as_columns = as_columns
        self._catalog = _Catalog(catalog_name, dict(catalog_properties))
        self._name = table_name
        table = self._catalog.load().load_table(table_name)
        if snapshot_id is None and table.current_snapshot() is not None:
            snapshot_id = table.current_snapshot().snapshot_id
        self._snapshot_id = snapshot_id
        self._names = checked_names(
            columns, table.scan(snapshot_id=snapshot_id).projection().column_names, "IcebergSource"
        )
        scan = self._scan(table)
        schema = scan.projection().as_arrow()
        super().__init__(
            load("iceberg", "an Iceberg table", "pyarrow").schema([schema.field(name) for name in self._names]),
            sorted(task.file.file_path for task in scan.plan_files()),
            as_columns=as_columns,
        )

    def _scan(self, table: Any) -> Any:
        return table.scan(selected_fields=tuple(self._names), snapshot_id=self._snapshot_id)

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open a file at its first row, or behind the rows that an earlier reader has read."""
        return _FileReader(self, split.what, position)

    def __repr__(self) -> str:
        return f"IcebergSource({self._name!r}, {self._snapshot_id})"


class _FileReader(ArrowRowReader):
    def __init__(self, source: IcebergSource, file: str, position: Any | None) -> None:
        super().__init__(file, position, as_columns=source._as_columns)
        self._source = source
        self._file = file

    def open_batches(self) -> Iterator[Any]:
        from pyiceberg.io.pyarrow import ArrowScan

        table = self._source._catalog.load().load_table(self._source._name)
        scan = self._source._scan(table)
        tasks = [task for task in scan.plan_files() if task.file.file_path == self._file]
        # The library applies deletes and renamed columns.
        arrow = ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter)
        return (batch.select(self._source._names) for batch in arrow.to_table(tasks).to_batches())


def _columns(schema: Any) -> dict[str, str]:
    """Return the types of columns by name. Iceberg does not distinguish lengths of text."""
    return {each.name: str(each.type).removeprefix("large_") for each in schema}


def _created(catalog: Any, name: str, columns: Any, partition_by: Sequence[str]) -> Any:
    """Return the table; create it with its partitioning at once if it does not exist."""
    from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
    from pyiceberg.transforms import parse_transform

    steps = [_transform_of(text) for text in partition_by]
    unknown = [column for _, column in steps if column not in columns.names]
    if unknown:
        raise ConfigurationError(f"IcebergSink cannot partition by {unknown[0]!r}: the row type has {columns.names}")
    with contextlib.suppress(NoSuchTableError):
        return catalog.load_table(name)
    if not steps:
        return catalog.create_table_if_not_exists(name, columns)
    with (
        contextlib.suppress(TableAlreadyExistsError),  # another program created it in between
        catalog.create_table_transaction(name, columns) as creation,
        creation.update_spec() as spec,
    ):
        for transform, column in steps:
            suffix = "" if transform == "identity" else f"_{transform}"
            spec.add_field(column, parse_transform(transform), f"{column}{suffix}")
    return catalog.load_table(name)


def _transform_of(text: str) -> tuple[str, str]:
    """Return the transform and the column of one part of a partitioning.

    >>> _transform_of("item"), _transform_of("day(at)")
    (('identity', 'item'), ('day', 'at'))
    """
    transform, bracket, rest = text.partition("(")
    if not bracket:
        return "identity", text
    if transform not in _TRANSFORMS or not rest.endswith(")"):
        raise ConfigurationError(
            f"IcebergSink cannot partition by {text!r}: give the name of a column, or year, month, day or hour of one, "
            "as in 'day(at)'"
        )
    return transform, rest[:-1]


def _check_partitions(table: Any, name: str, partition_by: Sequence[str] | None) -> None:
    if partition_by is None:
        return
    schema = table.schema()
    found = [(str(each.transform), schema.find_column_name(each.source_id)) for each in table.spec().fields]
    if found != [_transform_of(text) for text in partition_by]:
        raise ConfigurationError(
            f"IcebergSink cannot write {name!r}: the table is partitioned by {found}, not by {list(partition_by)}"
        )
