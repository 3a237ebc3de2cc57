"""Files in and out of DataSet programs, on Spark."""

import pytest

from ekorn.common import Row, Types
from ekorn.dataset import InputFormat, NumberSequenceIterator, OutputFormat, WriteMode
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.datastream.functions import MapFunction
from ekorn.errors import ConfigurationError, InvalidProgramError, JobExecutionError, OutputExistsError
from ekorn.table.types import DataTypes


class Letters(InputFormat[str, str]):
    """Splits are words, and records their letters."""

    def create_input_splits(self, min_num_splits):
        return ["ab", "cde", ""]

    def open(self, split):
        self.rest = list(split)

    def reached_end(self):
        return not self.rest

    def next_record(self):
        return self.rest.pop(0)


def test_inputs(env, tmp_path):
    (tmp_path / "a.csv").write_text("1,x\n2,y\n")
    (tmp_path / "b.csv").write_text("3,z\n")
    assert sorted(env.read_csv_file(tmp_path).types(int, str).collect()) == [(1, "x"), (2, "y"), (3, "z")]
    assert sorted(env.read_csv(tmp_path / "a.csv", [int, str]).collect()) == [(1, "x"), (2, "y")]
    assert sorted(env.read_text_file(tmp_path).collect()) == ["1,x", "2,y", "3,z"]
    (tmp_path / "numbers").write_text("5;6;7")
    assert sorted(env.read_file_of_primitives(tmp_path / "numbers", Types.INT(), ";").collect()) == [5, 6, 7]
    (tmp_path / "rows.json").write_text('{"id": 1, "word": "a"}\n{"id": 2, "word": null}\n')
    assert env.read_json(tmp_path / "rows.json").map(lambda x: x["id"]).reduce(max).collect() == [2]
    rows = env.read_json(tmp_path / "rows.json", Types.ROW_NAMED(["id", "word"], [Types.INT(), Types.STRING()]))
    assert sorted(map(tuple, rows.collect())) == [(1, "a"), (2, None)]
    assert sorted(env.create_input(Letters()).collect()) == ["a", "b", "c", "d", "e"]
    assert sorted(env.create_input(NumberSequenceSource(1, 4)).collect()) == [1, 2, 3, 4]
    assert sorted(env.from_parallel_collection(NumberSequenceIterator(1, 5)).collect()) == [1, 2, 3, 4, 5]


def test_a_malformed_line_fails_the_job_with_its_place(env, tmp_path):
    (tmp_path / "in.csv").write_text("1,a\nb,2\n")
    with pytest.raises(JobExecutionError, match=r"line 2 of '.*in.csv'"):
        env.read_csv_file(tmp_path / "in.csv").types(int, str).collect()
    with pytest.raises(ConfigurationError, match="no such file"):
        env.read_text_file(tmp_path / "nothing").collect()


def test_parquet_there_and_back(env, tmp_path):
    columns = DataTypes.ROW([DataTypes.FIELD("word", DataTypes.STRING()), DataTypes.FIELD("count", DataTypes.BIGINT())])
    env.from_elements(("a", 1), ("b", None)).write_as_parquet(tmp_path / "out", columns)
    env.execute()
    rows = env.read_parquet(tmp_path / "out").collect()
    assert sorted(rows, key=lambda row: row.word) == [Row(word="a", count=1), Row(word="b", count=None)]


def test_all_sinks_run_from_one_plan_and_appear_together(env, tmp_path):
    numbers = env.generate_sequence(1, 4).map(Counting())
    numbers.write_as_text(tmp_path / "all").set_parallelism(1)
    numbers.map(lambda x: (x, x * x)).write_as_csv(tmp_path / "squares", field_delimiter=";")
    result = env.execute()
    assert sorted((tmp_path / "all").read_text().split()) == ["1", "2", "3", "4"]
    lines = [line for each in (tmp_path / "squares").iterdir() for line in each.read_text().split()]
    assert sorted(lines) == ["1;1", "2;4", "3;9", "4;16"]
    assert result.get_accumulator_result("mapped") == 4
    with pytest.raises(OutputExistsError):
        numbers.write_as_text(tmp_path / "all")
        env.execute()
    numbers.write_as_text(tmp_path / "all", WriteMode.OVERWRITE)
    numbers.map(lambda x: x // 0).write_as_text(tmp_path / "never")
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        env.execute()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["all", "squares"]
    assert (tmp_path / "all").is_file()


class Counting(MapFunction):
    def open(self, runtime_context):
        self.mapped = runtime_context.get_int_counter("mapped")

    def map(self, value):
        self.mapped.add()
        return value


class Appending(OutputFormat[int]):
    """Notes in a file what is called."""

    def __init__(self, path):
        self.path = path

    def note(self, text):
        with open(self.path, "a") as file:
            file.write(text + "\n")

    def initialize_global(self, parallelism):
        self.note(f"begin {parallelism}")

    def open(self, task_number, num_tasks):
        self.number = task_number

    def write_record(self, record):
        self.note(f"{self.number}: {1 // record}")

    def finalize_global(self, parallelism):
        self.note("end")

    def try_cleanup_on_error(self):
        self.note("clean up")


def test_an_output_format_of_the_user(env, tmp_path):
    env.from_elements(1).output(Appending(tmp_path / "notes")).set_parallelism(1)
    env.execute()
    assert (tmp_path / "notes").read_text() == "begin 1\n0: 1\nend\n"
    env.from_elements(0).output(Appending(tmp_path / "failed")).set_parallelism(1)
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        env.execute()
    assert (tmp_path / "failed").read_text() == "begin 1\nclean up\n"


def test_what_a_sink_cannot_write_is_refused(env, tmp_path):
    with pytest.raises(InvalidProgramError, match="writes tuples and rows"):
        env.from_elements(1).write_as_csv(tmp_path / "a")
    with pytest.raises(InvalidProgramError, match="needs the columns"):
        env.from_elements(1).write_as_parquet(tmp_path / "a")
    with pytest.raises(TypeError, match="write mode"):
        env.from_elements(1).write_as_text(tmp_path / "a", True)
