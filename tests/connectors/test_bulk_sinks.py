"""File sinks of bulk formats, by URL, and with compaction, under the contract of all sinks."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from ekorn.clock import ManualClock
from ekorn.common import Row
from ekorn.common.serialization import BulkWriterFactory, Encoder
from ekorn.connectors.files.multipart_parts import MultipartParts
from ekorn.datastream.connectors.file_system import (
    BucketAssigner,
    CheckpointRollingPolicy,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    FileSource,
    RecordWiseFileCompactor,
    RollingPolicy,
    StreamFormat,
    StreamingFileSink,
)
from ekorn.datastream.formats.avro import AvroBulkWriters, AvroReaderFormat, AvroSchema
from ekorn.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from ekorn.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from ekorn.errors import ConfigurationError, PendingFileLost, RecordFormatError, may_be_retried
from ekorn.storage.file_store import open_files
from ekorn.table import DataTypes
from ekorn.testing.kits import RefusesBadRecords, SinkCase, SinkJob
from tests.connectors.formats.files import read_source
from tests.connectors.sink_contract import SinkContract
from tests.connectors.writing import hidden_files, visible_files, visible_lines
from tests.s3_server import s3_endpoint, s3_url  # noqa: F401 - fixtures

ROW_TYPE = DataTypes.ROW([DataTypes.FIELD("bucket", DataTypes.STRING()), DataTypes.FIELD("number", DataTypes.INT())])
AVRO = AvroSchema.parse_string(
    '{"type": "record", "name": "R", "fields": [{"name": "bucket", "type": "string"},'
    ' {"name": "number", "type": "int"}]}'
)
CSV = CsvSchema.builder().add_string_column("bucket").add_number_column("number", DataTypes.INT()).build()
FORMATS = {
    "csv": (CsvBulkWriters.for_schema(CSV), CsvReaderFormat.for_schema(CSV)),
    "avro": (AvroBulkWriters.for_generic_record(AVRO), AvroReaderFormat.for_generic_record(AVRO)),
    "parquet": (ParquetBulkWriters.for_row_type(ROW_TYPE), ParquetColumnarRowInputFormat(ROW_TYPE)),
}
EVERY_SECOND = FileCompactStrategy.builder().enable_compaction_on_checkpoint(2).set_num_compact_threads(2).build()
BY_SIZE = {  # two files or more
    "csv": FileCompactStrategy.builder().set_size_threshold(8).build(),
    "parquet": FileCompactStrategy.builder().set_size_threshold(1200).build(),
}


class ByBucket(BucketAssigner):
    def get_bucket_id(self, element, context):
        return f"b={element['bucket']}"


class BulkCase(SinkCase):
    def __init__(self, base, name, strategy=None):
        self.base = base
        self.name = name
        self.strategy = strategy

    def sink(self):
        factory, reader = FORMATS[self.name]
        builder = FileSink.for_bulk_format(self.base, factory).with_bucket_assigner(ByBucket())
        if self.strategy is not None:
            builder.enable_compact(self.strategy, RecordWiseFileCompactor(reader))
        return builder.build()

    def record(self, number):
        fields = {"bucket": "ab"[number % 2], "number": number}
        return fields if self.name == "avro" else Row(**fields)

    def visible(self):
        reader = FORMATS[self.name][1]
        begin: Any = FileSource.for_record_stream_format if self.name == "csv" else FileSource.for_bulk_file_format
        Path(self.base).mkdir(exist_ok=True)
        return read_source(begin(reader, self.base).build())

    def spoil(self):
        record = self.record(1)
        record["number"] = "no number"
        return record, RecordFormatError, "is not a record in"


@pytest.mark.parametrize("name", FORMATS)
class TestBulkFormats(SinkContract, RefusesBadRecords):
    fault_points = ("sink-file",)

    @pytest.fixture
    def make_case(self, tmp_path, name):
        return lambda: BulkCase(str(tmp_path / uuid.uuid4().hex), name)


@pytest.mark.parametrize("by_size", [False, True], ids=["on-checkpoint", "by-size"])
@pytest.mark.parametrize("name", ["csv", "parquet"])
class TestCompactedBulkFormats(SinkContract, RefusesBadRecords):
    fault_points = ("sink-file", "sink-compact")

    @pytest.fixture
    def make_case(self, tmp_path, name, by_size):
        strategy = BY_SIZE[name] if by_size else EVERY_SECOND
        return lambda: BulkCase(str(tmp_path / uuid.uuid4().hex), name, strategy)


class LinesCase(SinkCase):
    """Lines on any storage; `open_files` lists them."""

    def __init__(self, base, policy=None, strategy=None):
        self.base = base
        self.policy = policy or RollingPolicy.on_checkpoint_rolling_policy()
        self.strategy = strategy

    def sink(self):
        builder = FileSink.for_row_format(self.base, Encoder.simple_string_encoder())
        builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).with_rolling_policy(self.policy)
        if self.strategy is not None:
            builder.enable_compact(self.strategy, FileCompactor.concat_file_compactor())
        return builder.with_clock(ManualClock()).build()

    def record(self, number):
        return f"line {number} ä"

    def names(self):
        return open_files(self.base).list()

    def visible(self):
        if not any(not name.startswith(".") for name in self.names()):
            return []
        return read_source(FileSource.for_record_stream_format(StreamFormat.text_line_format(), self.base).build())


@pytest.mark.parametrize("policy", [None, RollingPolicy.default_rolling_policy()], ids=["checkpoint", "default"])
class TestMemory(SinkContract):
    """A store without appends, and with copies instead of renames."""

    fault_points = ("sink-file", "sink-file-copied")

    @pytest.fixture
    def make_case(self, policy):
        return lambda: LinesCase(f"memory://sinks/{uuid.uuid4().hex}", policy)


class TestTree(SinkContract):
    """A remote file system, with renames, as HDFS has."""

    fault_points = ("sink-file", "sink-file-copied")

    @pytest.fixture
    def make_case(self, tmp_path):
        return lambda: LinesCase(f"local://{tmp_path}/{uuid.uuid4().hex}")


class TestCompactedMemory(SinkContract):
    fault_points = ("sink-file", "sink-file-copied", "sink-compact")

    @pytest.fixture
    def make_case(self):
        return lambda: LinesCase(f"memory://sinks/{uuid.uuid4().hex}", strategy=EVERY_SECOND)


class TestS3(SinkContract):
    """Multipart uploads, which boto3 completes."""

    parallelisms = (3,)
    fault_points = ("sink-file", "sink-file-copied")

    @pytest.fixture
    def make_case(self, s3_url):  # noqa: F811
        return lambda: LinesCase(s3_url(uuid.uuid4().hex))


@pytest.mark.soak
class TestCompactedS3(SinkContract):
    """Hidden objects, which are copied."""

    parallelisms = (3,)
    fault_points = ("sink-file", "sink-file-copied", "sink-compact")

    @pytest.fixture
    def make_case(self, s3_url):  # noqa: F811
        return lambda: LinesCase(s3_url(uuid.uuid4().hex), strategy=EVERY_SECOND)


def test_a_part_of_many_pieces_appears_whole_on_s3(s3_url):  # noqa: F811
    case = LinesCase(s3_url("out"))
    job = SinkJob(case.sink(), 1)
    lines = [f"{number:07d}" * 1000 for number in range(3000)]  # 21 MB: three pieces
    for line in lines:
        job.write(0, line)
    job.begin_checkpoint()
    assert b"canary" not in job.begun[0].subtasks[0]
    assert case.names() == [], "an upload is not an object"
    job.complete_checkpoint(notified=0)
    job.crash(2)
    assert [name.startswith("part") for name in case.names()] == [True]
    assert case.visible() == lines


class Expired:
    """S3 after a lifecycle rule has removed an upload."""

    def complete_multipart_upload(self, **request):
        raise ClientError({"Error": {"Code": "NoSuchUpload"}, "ResponseMetadata": {"HTTPStatusCode": 404}}, "Complete")

    def head_object(self, **request):
        raise ClientError({"Error": {"Code": "404"}, "ResponseMetadata": {"HTTPStatusCode": 404}}, "HeadObject")


def test_an_upload_that_is_gone_is_an_error_that_says_so(s3_url):  # noqa: F811
    job = SinkJob(LinesCase(s3_url("out")).sink(), 1)
    job.write(0, "a")
    (file,) = job.subtasks[0].writer.prepare_commit()
    parts = MultipartParts(s3_url("out"))
    parts.client = Expired()
    with pytest.raises(
        PendingFileLost, match=r"the upload '.*' is gone, and 2 bytes .*let lifecycle rules keep uploads"
    ):
        parts.publish([file])


class Completed(Expired):
    """S3 after the upload was completed, by an attempt that died before it could say so."""

    def head_object(self, **request):
        return {"ContentLength": 2}


def test_an_upload_that_was_completed_before_counts_as_committed(s3_url):  # noqa: F811
    job = SinkJob(LinesCase(s3_url("out")).sink(), 1)
    job.write(0, "a")
    (file,) = job.subtasks[0].writer.prepare_commit()
    parts = MultipartParts(s3_url("out"))
    parts.client = Completed()
    parts.publish([file])


def test_an_upload_that_no_checkpoint_refers_to_is_aborted(s3_url):  # noqa: F811
    case = LinesCase(s3_url("out"))
    job = SinkJob(case.sink(), 1)
    job.write(0, "a" * (9 << 20))
    parts = case.sink().parts()
    prefix = parts.key("")
    assert len(parts.client.list_multipart_uploads(Bucket=parts.bucket, Prefix=prefix).get("Uploads", ())) == 1
    job.subtasks[0].writer.close()
    assert not parts.client.list_multipart_uploads(Bucket=parts.bucket, Prefix=prefix).get("Uploads", ())


def test_state_of_compacted_parts_on_s3_holds_no_credentials(s3_url):  # noqa: F811
    case = LinesCase(s3_url("out"), strategy=EVERY_SECOND)
    job = SinkJob(case.sink(), 1)
    job.write(0, "a" * 300_000)
    job.begin_checkpoint()
    assert b"canary" not in job.begun[0].subtasks[0]
    assert "canary" not in repr(case.sink())
    assert [name.startswith(".part") for name in case.names()] == [True]
    job.complete_checkpoint()
    job.finish()
    assert [name.startswith("part") for name in case.names()] == [True]


def test_a_sink_that_moved_says_where_its_files_are():
    first, second = (f"memory://sinks/{uuid.uuid4().hex}" for _ in range(2))
    job = SinkJob(LinesCase(first).sink(), 1)
    job.write(0, "a")
    job.begin_checkpoint()
    job.complete_checkpoint(notified=0)
    job.sink = LinesCase(second).sink()
    with pytest.raises(Exception, match=f"it was written below {first}"):
        job.crash(1)


# ------------------------------------------------------------------------------------------------------ bulk formats


def test_files_of_bulk_formats_end_at_every_checkpoint(tmp_path):
    case = BulkCase(str(tmp_path), "parquet")
    job = SinkJob(case.sink(), 1)
    for number in (0, 2, 4):
        job.write(0, case.record(number))
        job.checkpoint()
    assert len(visible_files(tmp_path)) == 3
    assert hidden_files(tmp_path) == []


def test_policies_that_keep_files_open_over_checkpoints_are_refused_for_bulk_formats(tmp_path):
    with pytest.raises(ConfigurationError, match="ends at every checkpoint"):
        FileSink.for_bulk_format(str(tmp_path), FORMATS["avro"][0]).with_rolling_policy(
            RollingPolicy.default_rolling_policy()
        )
    with pytest.raises(TypeError, match="takes a BulkWriterFactory"):
        FileSink.for_bulk_format(str(tmp_path), Encoder.simple_string_encoder())  # type: ignore[arg-type]


class ByCount(CheckpointRollingPolicy):
    """Ends a file at the second record."""

    def should_roll_on_event(self, part_file_state, element):
        return element["number"] % 4 == 0

    def should_roll_on_processing_time(self, part_file_state, current_time):
        return False


def test_files_of_bulk_formats_may_end_earlier(tmp_path):
    factory, _ = FORMATS["csv"]
    builder = FileSink.for_bulk_format(str(tmp_path), factory).with_bucket_assigner(ByBucket())
    job = SinkJob(builder.with_rolling_policy(ByCount()).build(), 1)
    for number in (0, 2, 4, 6):
        job.write(0, Row(bucket="a", number=number))
    job.checkpoint()
    assert sorted(path.read_text() for path in visible_files(tmp_path)) == ["a,0\na,2\n", "a,4\na,6\n"]


class Late(BulkWriterFactory):
    """Keeps the stream, as a writer does that writes its end when it is garbage."""

    def create(self, stream):
        self.stream = stream
        return self

    def add_element(self, element):
        self.stream.write(b"x" * 100_000)

    def flush(self):
        pass

    def finish(self):
        pass


def test_what_is_written_after_a_part_was_dropped_goes_nowhere(tmp_path):
    late = Late()
    job = SinkJob(FileSink.for_bulk_format(str(tmp_path), late).with_bucket_assigner(ByBucket()).build(), 1)
    job.write(0, Row(bucket="a", number=1))
    assert len(hidden_files(tmp_path)) == 1
    job.subtasks[0].writer.close()
    late.stream.write(b"x" * 100_000)
    assert visible_files(tmp_path) == hidden_files(tmp_path) == []


def test_the_older_sink_writes_bulk_formats_too(tmp_path):
    with pytest.warns(DeprecationWarning):
        sink = StreamingFileSink.for_bulk_format(str(tmp_path), FORMATS["csv"][0]).build()

    class Runtime:
        def get_index_of_this_subtask(self):
            return 0

    class NoTimestamp:
        def timestamp(self):
            return None

    sink.open(Runtime())  # type: ignore[arg-type]
    files = sink.begin_transaction()
    sink.invoke(files, Row(bucket="a", number=1), NoTimestamp())  # type: ignore[arg-type]
    sink.pre_commit(files)
    sink.commit(files)
    assert visible_lines(tmp_path) == ["a,1"]


# -------------------------------------------------------------------------------------------------------- compaction


def compacting(base, strategy, compactor=None):
    builder = FileSink.for_row_format(str(base), Encoder.simple_string_encoder())
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    return builder.enable_compact(strategy, compactor or FileCompactor.concat_file_compactor()).build()


def test_parts_are_merged_after_some_checkpoints(tmp_path):
    job = SinkJob(compacting(tmp_path, EVERY_SECOND), 1)
    for number in range(4):
        job.write(0, str(number))
        job.checkpoint()
        assert len(visible_files(tmp_path)) == (number + 1) // 2
    assert sorted(path.read_text() for path in visible_files(tmp_path)) == ["0\n1\n", "2\n3\n"]
    assert all(path.name.startswith("compacted-part-0-") for path in visible_files(tmp_path))
    assert hidden_files(tmp_path) == []


def test_parts_are_merged_when_they_are_large_together(tmp_path):
    strategy = FileCompactStrategy.builder().set_size_threshold(6).build()
    job = SinkJob(compacting(tmp_path, strategy, FileCompactor.concat_file_compactor(b"--\n")), 1)
    counts = []
    for text in ("a", "b", "c", "d"):
        job.write(0, text)
        job.checkpoint()
        counts.append(len(visible_files(tmp_path)))
    assert counts == [0, 0, 1, 1]
    assert visible_lines(tmp_path) == ["a", "--", "b", "--", "c"]
    job.finish()
    assert len(visible_lines(tmp_path)) == 6


def test_parts_may_be_kept_as_they_are(tmp_path):
    job = SinkJob(compacting(tmp_path, EVERY_SECOND, FileCompactor.identical_file_compactor()), 1)
    for number in range(2):
        job.write(0, str(number))
        job.checkpoint()
    assert sorted(path.read_text() for path in visible_files(tmp_path)) == ["0\n", "1\n"]


@pytest.mark.parametrize("is_by_url", [False, True])
def test_a_part_that_is_lost_while_it_waits_to_be_merged_ends_the_job(tmp_path, is_by_url):
    base = f"memory://sinks/{uuid.uuid4().hex}" if is_by_url else tmp_path
    sink = compacting(base, EVERY_SECOND)
    job = SinkJob(sink, 1)
    job.write(0, "a")
    job.checkpoint()
    (held,) = job.subtasks[0].writer.snapshot_state()
    sink.parts().remove_hidden(held)
    job.write(0, "b")
    with pytest.raises(PendingFileLost, match=r"inprogress.* is gone, and 2 bytes .* Put the file back") as raised:
        job.checkpoint()
    assert not may_be_retried(raised.value) and "create an empty file" not in str(raised.value)


def test_parts_that_wait_become_visible_when_compaction_is_switched_off(tmp_path):
    job = SinkJob(compacting(tmp_path, FileCompactStrategy.builder().set_size_threshold(1000).build()), 1)
    job.write(0, "a")
    job.checkpoint()
    assert visible_files(tmp_path) == []
    job.sink = LinesCase(str(tmp_path)).sink()
    job.crash(1)
    job.checkpoint()
    assert visible_lines(tmp_path) == ["a"]


def test_a_builder_that_was_told_to_merge_may_be_told_not_to(tmp_path):
    builder = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    builder.enable_compact(EVERY_SECOND, FileCompactor.concat_file_compactor())
    job = SinkJob(builder.disable_compact().build(), 1)
    job.write(0, "a")
    job.checkpoint()
    assert visible_lines(tmp_path) == ["a"]


WITH_HEADER = CsvBulkWriters.for_schema(CsvSchema.builder().add_string_column("bucket").set_use_header().build())


@pytest.mark.parametrize("factory", [FORMATS["avro"][0], FORMATS["parquet"][0], WITH_HEADER], ids=repr)
def test_files_with_a_beginning_or_an_end_are_not_joined_byte_by_byte(factory, tmp_path):
    builder = FileSink.for_bulk_format(str(tmp_path), factory)
    with pytest.raises(ConfigurationError, match=r"cannot join the bytes .* use RecordWiseFileCompactor"):
        builder.enable_compact(EVERY_SECOND, FileCompactor.concat_file_compactor())


def test_a_strategy_needs_a_condition():
    with pytest.raises(ConfigurationError, match="needs set_size_threshold"):
        FileCompactStrategy.builder().build()
    with pytest.raises(ValueError, match="above 0"):
        FileCompactStrategy.builder().set_size_threshold(0)
