"""`HybridSource`: one source after the other, without gap or overlap, whatever fails around the switch."""

import pyarrow as pa
import pytest

from ekorn.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.columns import ColumnGeneratorSource, ColumnStream
from ekorn.datastream.connectors.datagen import DataGeneratorSource
from ekorn.datastream.connectors.file_system import FileSource, StreamFormat
from ekorn.datastream.connectors.hybrid_source import HybridSource
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.errors import ConfigurationError
from ekorn.functions.source_contract import Boundedness
from ekorn.testing.kits import RefusesBadInput, SourceCase, SourceKit
from ekorn.testing.local_run import on_local_engine
from ekorn.testing.scripted import Crash, Script, ScriptedSource, run_scripted

FIRST = [[f"a{n}" for n in range(9)], [f"b{n}" for n in range(2)], ["c0"]]
SECOND = [[f"d{n}" for n in range(3)], [f"e{n}" for n in range(4)]]
THIRD = [["f0", "f1"]]
ALL = sorted(record for split in [*FIRST, *SECOND, *THIRD] for record in split)


class FilesThenNumbers(SourceCase):
    def __init__(self, folder):
        self.folder = folder
        for name in ("x", "y", "z"):
            (folder / name).write_text("".join(f"{name}{n}\n" for n in range(6)))

    @property
    def records(self):
        return [f"{name}{n}" for name in ("x", "y", "z") for n in range(6)] + list(range(10))

    def bounded(self):
        files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(self.folder)).build()
        return HybridSource.builder(files).add_source(NumberSequenceSource(0, 9)).build()

    def spoil(self):
        (self.folder / "x").write_bytes(b"\xff\xfe")
        return ConfigurationError, "cannot read '.*/x' as UTF-8"


class TestFilesThenNumbers(SourceKit, RefusesBadInput):
    @pytest.fixture
    def case(self, tmp_path):
        return FilesThenNumbers(tmp_path)


def hybrid():
    sources = [ScriptedSource(splits, [1, 2]) for splits in (FIRST, SECOND, THIRD)]
    return HybridSource.builder(sources[0]).add_source(sources[1]).add_source(sources[2]).build()


def run(script, parallelism=2):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(parallelism).enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(20, 0))
    stream = env.from_source(hybrid(), WatermarkStrategy.no_watermarks(), "hybrid")
    return run_scripted(stream.map(str).set_parallelism(1), script).records


def stages(records):
    return [min("abcdef".index(record[0]) // 3 + (record[0] == "f"), 2) for record in records]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_source_is_read_when_no_subtask_reads_an_earlier_one(parallelism):
    records = run(Script(), parallelism)
    assert sorted(records) == ALL
    assert stages(records) == sorted(stages(records))


@pytest.mark.parametrize("count", [2, 5, 8])
@pytest.mark.parametrize("point", ["in-epoch", "after-epoch", "before-notify", "after-notify"])
def test_a_crash_around_a_switch_loses_and_repeats_nothing(point, count):
    records = run(Script(checkpoints=[True, False], crashes=[Crash(point, count)]))
    assert sorted(records) == ALL


def test_only_the_last_source_may_be_unbounded():
    endless = DataGeneratorSource(str, None)
    source = HybridSource.builder(NumberSequenceSource(0, 3)).add_source(endless).build()
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    with pytest.raises(ValueError, match="is unbounded"):
        HybridSource.builder(endless).add_source(NumberSequenceSource(0, 3))


def test_anything_but_a_source_is_refused():
    with pytest.raises(TypeError, match=r"HybridSource.builder\(\) takes a Source"):
        HybridSource.builder([1, 2])  # type: ignore[arg-type]


def test_the_type_is_the_one_that_all_sources_declare():
    numbers = NumberSequenceSource(0, 3)
    assert HybridSource.builder(numbers).add_source(numbers).build().get_produced_type() == numbers.get_produced_type()
    assert HybridSource.builder(numbers).add_source(DataGeneratorSource(str, 1)).build().get_produced_type() is None


def numbers(name="n"):
    row_type = Types.ROW_NAMED([name], [Types.LONG()])
    return ColumnGeneratorSource(lambda first, count: pa.record_batch({name: range(first, first + count)}), 4, row_type)


def test_sources_of_columns_are_read_as_one_stream_of_columns():
    env = StreamExecutionEnvironment.get_execution_environment()
    source = HybridSource.builder(numbers()).add_source(numbers()).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    assert isinstance(stream, ColumnStream)
    with on_local_engine(), stream.execute_and_collect() as found:
        assert sorted(row["n"] for row in found) == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("other", [numbers("m"), NumberSequenceSource(0, 9)], ids=["other columns", "records"])
def test_columns_and_something_else_in_one_source_are_refused(other):
    env = StreamExecutionEnvironment.get_execution_environment()
    source = HybridSource.builder(numbers()).add_source(other).build()
    with pytest.raises(ConfigurationError, match=r"must give columns of one type.*gives Columns\(n: int64\); "):
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
