"""File sources and file sinks under the contracts of all sources and all sinks."""

import uuid

import pytest

from ekorn.datastream.connectors.datagen import DataGeneratorSource
from ekorn.datastream.connectors.file_system import FileEnumeratorProvider, FileSource, StreamFormat
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.errors import ConfigurationError
from ekorn.testing.kits import FindsNewInput, RefusesBadInput, SinkCase, SourceCase, SourceKit
from tests.connectors.file_sinks import BY_SIZE, EACH_CHECKPOINT, ByFirstLetter, sink_to
from tests.connectors.sink_contract import SinkContract
from tests.connectors.writing import visible_lines


class NumbersCase(SourceCase):
    records = list(range(-3, 20))

    def bounded(self):
        return NumberSequenceSource(-3, 19)


class TestNumbers(SourceKit):
    @pytest.fixture
    def case(self):
        return NumbersCase()


class GeneratedCase(SourceCase):
    records = [f"r{number}" for number in range(19)]

    def bounded(self):
        return DataGeneratorSource(lambda number: f"r{number}", 19)


class TestGenerated(SourceKit):
    @pytest.fixture
    def case(self):
        return GeneratedCase()


class TextCase(SourceCase):
    """Lines in three files; the enumerator divides them into ranges, or not."""

    def __init__(self, folder, enumerator):
        self._folder = folder
        self._enumerator = enumerator
        for number, count in enumerate((5, 0, 9)):
            self._write(f"{number}.txt", [f"{number}-{line} €" for line in range(count)])

    def _write(self, name, lines):
        (self._folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def _builder(self):
        builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(self._folder))
        return builder.set_file_enumerator(self._enumerator)

    @property
    def records(self):
        return [line for path in self._folder.iterdir() for line in path.read_text(encoding="utf-8").splitlines()]

    def bounded(self):
        return self._builder().build()

    def unbounded(self):
        return self._builder().monitor_continuously(1000).build()

    def add_input(self):
        lines = ["new 1", "new 2"]
        self._write("new.txt", lines)
        return lines

    def spoil(self):
        (self._folder / "bad.txt").write_bytes(b"good\n\xff\n")
        return ConfigurationError, r"bad\.txt' as UTF-8: .* at byte 5"


@pytest.mark.parametrize("range_bytes", [None, 8])
class TestTextFiles(FindsNewInput, RefusesBadInput):
    @pytest.fixture
    def case(self, tmp_path, range_bytes):
        return TextCase(tmp_path, FileEnumeratorProvider(range_bytes))


class LinesCase(SinkCase):
    def __init__(self, base, policy):
        self._base = base
        self._policy = policy

    def sink(self):
        return sink_to(self._base, self._policy, assigner=ByFirstLetter())

    def record(self, number):
        return f"{'abc'[number % 3]}{number}"

    def visible(self):
        return visible_lines(self._base)


@pytest.mark.parametrize("policy", [EACH_CHECKPOINT, BY_SIZE], ids=["each-checkpoint", "by-size"])
class TestFileSink(SinkContract):
    fault_points = ("sink-file",)

    @pytest.fixture
    def make_case(self, tmp_path, policy):
        return lambda: LinesCase(tmp_path / uuid.uuid4().hex, policy)
