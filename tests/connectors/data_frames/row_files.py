"""Folders of Parquet files as Spark writes them, made without Spark."""

import io

import pyarrow.parquet

from tamias.connectors.data_frames.commit_log import CommitLog, path_of
from tamias.connectors.data_frames.parquet_rows import ParquetRows, RowColumns
from tamias.storage.file_store import open_files
from tamias.table import DataTypes, Row

ROW_TYPE = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT(False)), DataTypes.FIELD("word", DataTypes.STRING())])


def rows(first, count):
    return [Row(id=number, word=f"w{number}") for number in range(first, first + count)]


def parquet_of(records, row_group_rows=4):
    columns = RowColumns(ROW_TYPE)
    data = io.BytesIO()
    table = pyarrow.Table.from_batches([columns.batch(records)] if records else [], schema=columns.schema)
    pyarrow.parquet.write_table(table, data, row_group_size=row_group_rows)
    return data.getvalue()


def write_part(folder, number, records):
    open_files(str(folder)).write(f"part-{number:05d}-abc.c000.snappy.parquet", parquet_of(records))


def committed_rows(folder, row_type):
    """Return the rows that a `RowFilesSink` has committed to a folder."""
    found = []
    for file in CommitLog(open_files(str(folder))).all_files():
        read = ParquetRows(f"{folder}/{path_of(file)}", RowColumns(row_type), 0, size_bytes=file.size_bytes)
        while part := read.read(10_000):
            found += part
        read.close()
    return found
