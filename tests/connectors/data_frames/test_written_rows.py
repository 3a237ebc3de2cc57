"""The source of rows that Spark wrote once, under the contract of all sources."""

import pyarrow.parquet
import pytest

from ekorn.columns.row_columns import RowColumns
from ekorn.common import Instant
from ekorn.connectors.data_frames.parquet_rows import ParquetRows
from ekorn.connectors.data_frames.written_rows import (
    MANIFEST,
    WrittenRows,
    publish_manifest,
    read_manifest,
    row_files_in,
)
from ekorn.errors import RowFilesDamaged, RowFilesGone
from ekorn.storage.file_store import open_files
from ekorn.table import DataTypes, Row
from ekorn.testing.kits import RefusesBadInput, SourceCase, SourceJob, SourceKit
from tests.connectors.data_frames.row_files import ROW_TYPE, rows, write_part


class WrittenCase(SourceCase):
    """Three files, one of them empty, with several row groups."""

    records = rows(0, 11) + rows(100, 3)

    def __init__(self, folder):
        self._folder = folder
        write_part(folder, 0, rows(0, 11))
        write_part(folder, 1, [])
        write_part(folder, 2, rows(100, 3))
        (folder / "_SUCCESS").write_bytes(b"")
        publish_manifest(open_files(str(folder)), row_files_in(open_files(str(folder))), ROW_TYPE)

    def bounded(self):
        manifest = read_manifest(open_files(str(self._folder)))
        assert manifest is not None
        return WrittenRows(str(self._folder), ROW_TYPE, manifest.files)

    def spoil(self):
        part = next(self._folder.glob("part-00002*"))
        part.write_bytes(part.read_bytes()[:-1])
        return RowFilesDamaged, r"part-00002.*found \d+ bytes, expected \d+ bytes"


class TestWrittenRows(SourceKit, RefusesBadInput):
    @pytest.fixture
    def case(self, tmp_path):
        return WrittenCase(tmp_path)


def test_a_folder_without_its_manifest_is_not_complete(tmp_path):
    write_part(tmp_path, 0, rows(0, 2))
    assert read_manifest(open_files(str(tmp_path))) is None


@pytest.mark.parametrize("content", [b"", b"[]", b'{"format": "ekorn-rows", "version": 9, "files": []}'])
def test_a_manifest_that_cannot_be_read_is_an_error_that_names_it(tmp_path, content):
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(RowFilesDamaged, match=MANIFEST):
        read_manifest(open_files(str(tmp_path)))


def test_files_that_appear_after_the_manifest_are_not_read(tmp_path):
    case = WrittenCase(tmp_path)
    write_part(tmp_path, 3, rows(200, 5))
    assert len(SourceJob(case.bounded(), 1).read_all()) == len(case.records)


def test_a_file_that_is_gone_is_an_error_and_not_an_empty_one(tmp_path):
    case = WrittenCase(tmp_path)
    source = case.bounded()
    next(tmp_path.glob("part-00000*")).unlink()
    with pytest.raises(RowFilesGone, match=r"part-00000.* is gone; .* start from the newest checkpoint"):
        SourceJob(source, 1).read_all()


def test_splits_restored_by_another_folder_read_the_files_they_name(tmp_path):
    case = WrittenCase(tmp_path)
    saved = SourceJob(case.bounded(), 2).snapshot()
    other = WrittenRows("/nowhere", ROW_TYPE, [])
    assert len(SourceJob(other, 1, saved).read_all()) == len(case.records)


def test_points_in_time_beyond_nanoseconds_are_read_from_the_old_format_that_spark_writes(tmp_path):
    row_type = DataTypes.ROW([DataTypes.FIELD("at", DataTypes.TIMESTAMP_LTZ(6))])
    columns = RowColumns(row_type)
    records = [Row(at=Instant(-14_800_000_000, 1000)), Row(at=Instant(16_725_225_600, 0)), Row(at=None)]
    table = pyarrow.Table.from_batches([columns.batch(records)])
    path = tmp_path / "part-0.parquet"
    pyarrow.parquet.write_table(table, path, use_deprecated_int96_timestamps=True)
    assert ParquetRows(str(path), columns, 0, size_bytes=path.stat().st_size).read(10) == records
