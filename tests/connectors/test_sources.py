"""Every source reads each record once, for any batch size, any crash and any number of subtasks."""

import bz2
import gzip
import importlib
import lzma
import random
import sys
import uuid
import zlib
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ekorn.connectors.files import file_source
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.connectors.file_system import FileEnumeratorProvider, FileSource, StreamFormat
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.functions.source_contract import Boundedness
from ekorn.storage.file_store import open_files
from ekorn.storage.input_files import InputFile
from ekorn.testing.kits import SourceJob
from tests.connectors.reading import read_with_crashes
from tests.examples_by_profile import examples

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 4), st.integers(1, 9)),
        st.just(("checkpoint",)),
        st.tuples(st.just("crash"), st.integers(1, 4)),
    ),
    max_size=30,
)
LINE_ENDS = ["\n", "\r\n", "\r"]


def lines_with_ends(content):
    return content.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n") if content else []


class NumbersCase:
    source = NumberSequenceSource(-5, 40)
    records = list(range(-5, 41))


class GeneratedCase:
    source = DataGeneratorSource(lambda number: f"r{number}", 37, RateLimiterStrategy.per_second(1e12))
    records = [f"r{number}" for number in range(37)]


CONTENTS = {
    "a.txt": "one\ntwo\r\n\nfour\rfive",
    "b/ä.txt": "".join(f"zeile {i} €ä𝄞\n" for i in range(12)),
    "b/empty.txt": "",
    "c.txt": "\n\r\n\r",
}


class FilesCase:
    source: FileSource
    records = [line for content in CONTENTS.values() for line in lines_with_ends(content)]


@pytest.fixture(params=["numbers", "generated", "files", "ranges", "utf-16", "gzip"])
def case(request, tmp_path):
    if request.param in ("numbers", "generated"):
        return {"numbers": NumbersCase, "generated": GeneratedCase}[request.param]
    enumerator = FileEnumeratorProvider.default_non_splittable_file_enumerator()
    charset = "utf-16" if request.param == "utf-16" else "utf-8"
    if request.param in ("ranges", "utf-16"):
        enumerator = FileEnumeratorProvider(8)  # ranges begin everywhere, also inside characters and line ends
    for name, content in CONTENTS.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        data = content.encode(charset)
        if request.param == "gzip":
            half = len(data) // 2
            path = path.with_suffix(".gz")
            data = gzip.compress(data[:half]) + gzip.compress(data[half:])
        path.write_bytes(data)
    case = FilesCase()
    stream_format = StreamFormat.text_line_format(charset)
    builder = FileSource.for_record_stream_format(stream_format, str(tmp_path)).set_file_enumerator(enumerator)
    case.source = builder.build()
    return case


@pytest.mark.parametrize("batch", [1, 2, 7, 4096])
@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_all_records_are_read_once_in_batches_of_any_size(case, batch, parallelism):
    assert case.source.boundedness is Boundedness.BOUNDED
    assert Counter(SourceJob(case.source, parallelism).read_all(batch)) == Counter(case.records)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_each_record_counts_once_after_crashes_and_rescaling(case, steps):
    assert Counter(read_with_crashes(case.source, steps)) == Counter(case.records)


def test_split_ids_are_unique_and_stable(case):
    splits = case.source.discover_splits(3)
    assert len({split.id for split in splits}) == len(splits)
    assert case.source.discover_splits(3) == splits


# ------------------------------------------------------------------------------------------------ lines, in all ways

TEXT = st.lists(
    st.tuples(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), st.sampled_from(LINE_ENDS)),
    max_size=12,
).map(lambda lines: "".join(text + end for text, end in lines))


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=TEXT,
    tail=st.sampled_from(["", "no end", "ü", "𝄞"]),
    charset=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030"]),
    piece_bytes=st.sampled_from([1, 2, 3, 5, 64]),
    range_units=st.sampled_from([None, 1, 2, 3, 7]),
    batch=st.integers(1, 5),
    stop_after=st.integers(0, 6),
)
def test_lines_are_right_however_the_bytes_are_cut(  # noqa: PLR0917
    tmp_path, monkeypatch, content, tail, charset, piece_bytes, range_units, batch, stop_after
):
    monkeypatch.setattr("ekorn.connectors.files.file_bytes.PIECE_BYTES", piece_bytes)
    (tmp_path / "f").write_bytes((content + tail).encode(charset))
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset), str(tmp_path / "f"))
    if range_units is not None:
        # Multiples of 8: a character of any charset may begin there, and 8 bytes are longer than any byte-order mark.
        source.set_file_enumerator(FileEnumeratorProvider(range_units * 8))
    job = SourceJob(source.build(), 1)
    records = [record for _ in range(stop_after) for record in job.read(0, batch)]
    records += SourceJob(job.source, 1, job.snapshot()).read_all(batch)
    expected = lines_with_ends(content + tail)
    if range_units is None:
        assert records == expected
    else:
        assert Counter(records) == Counter(expected)


def read_lines(path, charset="UTF-8"):
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset), str(path)).build()
    return SourceJob(source, 1).read_all()


def test_java_takes_utf_16_without_a_mark_as_big_endian(tmp_path):
    (tmp_path / "f").write_bytes("a\nb".encode("utf-16-be"))
    assert read_lines(tmp_path / "f", "UTF-16") == ["a", "b"]


def test_charsets_with_other_newlines_are_read(tmp_path):
    (tmp_path / "f").write_bytes("a%\nb\r\nc".encode("cp037"))
    assert read_lines(tmp_path / "f", "cp037") == ["a%", "b", "c"]


def test_separators_that_only_python_knows_do_not_end_a_line(tmp_path):
    (tmp_path / "f").write_text("a\x0bb\x1cc\u2028d\x85e\n", encoding="utf-8")
    assert read_lines(tmp_path / "f") == ["a\x0bb\x1cc\u2028d\x85e"]


def test_a_line_longer_than_any_piece_is_one_record(tmp_path):
    (tmp_path / "f").write_text("x" * 1_000_000 + "\ny")
    assert [len(line) for line in read_lines(tmp_path / "f")] == [1_000_000, 1]


@pytest.mark.parametrize("suffix", [".gz", ".GZIP", ".bz2", ".xz", ".deflate", ".zst"])
def test_packed_files_are_unpacked_by_their_suffix(tmp_path, suffix):
    zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    pack: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.compress,
        ".gzip": gzip.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
        ".deflate": zlib.compress,
        ".zst": zstd.compress,
    }
    path = tmp_path / f"f{suffix}"
    path.write_bytes(pack[suffix.lower()](b"a\nb\n" * 50_000))
    assert read_lines(path) == ["a", "b"] * 50_000


def test_zeros_behind_a_packed_file_are_padding(tmp_path):
    (tmp_path / "f.gz").write_bytes(gzip.compress(b"a\n") + b"\0" * 100)
    assert read_lines(tmp_path / "f.gz") == ["a"]


def test_a_packed_file_that_breaks_off_is_an_error_that_names_it(tmp_path):
    (tmp_path / "f.gz").write_bytes(gzip.compress(random.Random(1).randbytes(5_000).hex().encode())[:-20])
    with pytest.raises(ValueError, match=r"f\.gz.*is truncated"):
        read_lines(tmp_path / "f.gz")


def test_a_file_that_is_not_packed_as_its_suffix_says_is_an_error_that_names_it(tmp_path):
    (tmp_path / "f.gz").write_bytes(b"plain text")
    with pytest.raises(ValueError, match=r"cannot unpack .*f\.gz"):
        read_lines(tmp_path / "f.gz")


def test_bytes_of_another_charset_are_an_error_with_file_and_offset(tmp_path):
    (tmp_path / "f").write_bytes(b"good\nb\xe4d\n")
    with pytest.raises(ValueError, match=r"cannot read '.*f' as UTF-8: .* at byte 6 \(b'\\xe4'\)"):
        read_lines(tmp_path / "f")


def test_going_on_in_a_file_that_became_shorter_is_an_error(tmp_path):
    path = tmp_path / "f"
    path.write_text("a\nb\nc\n")
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path)).build()
    job = SourceJob(source, 1)
    job.read(0, 2)
    path.write_text("a")
    with pytest.raises(ValueError, match="the file has 1 bytes now"):
        SourceJob(source, 1, job.snapshot()).read_all()


# ------------------------------------------------------------------------------------------------------ which files


def files_of(source):
    return [split.id for split in source.discover_splits(1)]


def test_directories_are_read_with_what_is_below_them_in_order_and_without_hidden_files(tmp_path):
    for name in ["b.txt", "a/z.txt", "a/.hidden", "a/_tmp/x", "_SUCCESS", ".git/config", "c"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path)).build()
    assert files_of(source) == [str(tmp_path / name) for name in ["a/z.txt", "b.txt", "c"]]


def test_paths_are_read_in_the_order_given_and_each_file_once(tmp_path):
    (tmp_path / "b").write_text("")
    (tmp_path / "a").write_text("")
    paths = [f"file://{tmp_path}/b", str(tmp_path)]
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), *paths).build()
    assert files_of(source) == [str(tmp_path / "b"), str(tmp_path / "a")]


def test_monitoring_finds_new_files_under_new_ids_and_keeps_the_old_ones(tmp_path):
    (tmp_path / "a").write_text("1\n")
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    builder.set_file_enumerator(FileEnumeratorProvider(8))
    source = builder.monitor_continuously(500).build()
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert source.discovery_interval_ms == 500
    assert files_of(source) == [str(tmp_path / "a")]
    (tmp_path / "a").write_text("1\n" * 100)
    (tmp_path / "b").write_text("2\n")
    assert files_of(source) == [str(tmp_path / "a"), str(tmp_path / "b")]


def test_a_missing_path_is_an_error_that_names_it(tmp_path):
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path / "none")).build()
    with pytest.raises(ValueError, match="none': there is no such file or directory"):
        source.discover_splits(1)


@pytest.mark.parametrize("suffix", ["txt", "gz"])
def test_files_are_read_by_url(suffix):
    address = f"memory://{uuid.uuid4().hex}/in"
    for name, text in {"a": "1\n2\n", "b/c": "3\n", "_draft": "no\n"}.items():
        content = text.encode()
        open_files(address).write(f"{name}.{suffix}", gzip.compress(content) if suffix == "gz" else content)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), address).build()
    assert files_of(source) == [f"{address}/a.{suffix}", f"{address}/b/c.{suffix}"]
    assert sorted(SourceJob(source, 2).read_all(1)) == ["1", "2", "3"]


class NotingFormat(StreamFormat):
    """Text lines; notes the addresses of the files that are opened."""

    def __init__(self):
        self.opened = []

    def can_split(self, path):
        return False

    def create_reader(self, path, start, end, position):
        self.opened.append(path)
        return StreamFormat.text_line_format().create_reader(path, start, end, position)

    def get_produced_type(self):
        return None


def test_splits_hold_no_credentials_and_readers_get_them_from_the_path(monkeypatch):
    address, noting = "s3://key:secret@bucket/in?region=x", NotingFormat()
    listed = [InputFile("s3://key:secret@bucket/in/a.txt?region=x", 3)]
    monkeypatch.setattr(file_source, "list_files", lambda path, skip: listed if path == address else [])
    source = FileSource.for_record_stream_format(noting, address).build()
    (split,) = source.discover_splits(1)
    source.create_reader(split, None)
    assert (split.id, split.what) == ("s3://bucket/in/a.txt", ("s3://bucket/in/a.txt", 0, None))
    assert noting.opened == [listed[0].address]
    assert "secret" not in repr(source)


@pytest.mark.parametrize("path", ["hdfs:/x", "file://host/x", ""])
def test_paths_that_cannot_be_read_are_refused_where_they_are_given(path):
    with pytest.raises(ValueError, match="path"):
        FileSource.for_record_stream_format(StreamFormat.text_line_format(), path)


def test_unknown_charsets_are_refused_where_they_are_given():
    for charset in ("no-such", "hex"):
        with pytest.raises(ValueError, match=f"no charset named '{charset}'"):
            StreamFormat.text_line_format(charset)
