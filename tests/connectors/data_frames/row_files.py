"""Folders of Parquet files as Spark writes them, made without Spark."""

import io

import pyarrow.parquet

from ekorn.columns.row_columns import RowColumns
from ekorn.connectors.data_frames.commit_log import CommitLog, path_of
from ekorn.connectors.data_frames.parquet_rows import ParquetRows
from ekorn.connectors.data_frames.row_batches import RowBatches, batch_path
from ekorn.connectors.data_frames.row_batches_source import RowBatchesSource
from ekorn.connectors.data_frames.written_rows import row_files_in
from ekorn.storage.file_store import open_files
from ekorn.table import DataTypes, Row

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
    return rows_of(folder, CommitLog(open_files(str(folder))).all_files(), row_type)


def rows_of(folder, files, row_type=ROW_TYPE):
    columns, found = RowColumns(row_type), []
    for file in files:
        reader = ParquetRows(f"{folder}/{path_of(file)}", columns, 0, size_bytes=file.size_bytes)
        while part := reader.read(100):
            found += part
        reader.close()
    return found


class Query:
    """Writes batches as a streaming query does."""

    def __init__(self, folder):
        self.folder = folder
        self.batches = RowBatches(open_files(str(folder)))

    def batch(self, batch_id, *parts):
        if self.batches.is_written(batch_id):
            return False
        for number, records in enumerate(parts):
            write_part(self.folder / batch_path(batch_id), number, records)
        files = row_files_in(open_files(str(self.folder)).below(batch_path(batch_id)))
        self.batches.publish(batch_id, files)
        return True

    def source(self, lanes=2, bounded=False):
        return RowBatchesSource(str(self.folder), ROW_TYPE, lanes=lanes, bounded=bounded, look_interval_ms=0)
