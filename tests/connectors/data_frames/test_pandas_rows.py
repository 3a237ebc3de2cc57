"""DataFrames of pandas in and out."""

import datetime
import decimal

import pandas
import pytest

from ekorn.common import Instant, Types
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.file_system import FileSource, StreamFormat
from ekorn.errors import ConfigurationError, InvalidProgramError
from ekorn.table import Row
from ekorn.testing import collect_locally, on_local_engine


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


def frame():
    return pandas.DataFrame(
        {
            "id": [1, 2, 3],
            "word": ["a", None, "c"],
            "score": [0.5, float("nan"), 1.5],
            "kind": pandas.Categorical(["x", "y", "x"]),
            "at": pandas.to_datetime(["2024-01-01", "2024-01-02", None], utc=True),
            "local": pandas.to_datetime(["2024-01-01 10:00", "2024-01-02 00:00", None]),
            "day": [datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 3)],
            "price": [decimal.Decimal("1.50"), None, decimal.Decimal("2.25")],
            "tags": [["a", "b"], [], None],
            "flag": [True, False, True],
        },
        index=[10, 20, 30],
    )


def test_rows_have_the_names_and_types_of_the_columns(env):
    stream = env.from_pandas(frame())
    assert stream.get_type().get_field_names() == list(frame().columns)
    assert stream.get_type().get_field_types()[:4] == [Types.LONG(), Types.STRING(), Types.DOUBLE(), Types.STRING()]
    first, second, _ = collect_locally(stream)
    assert first == Row(
        id=1,
        word="a",
        score=0.5,
        kind="x",
        at=Instant(1704067200, 0),
        local=datetime.datetime(2024, 1, 1, 10),
        day=datetime.date(2024, 1, 1),
        price=decimal.Decimal("1.50"),
        tags=["a", "b"],
        flag=True,
    )
    assert (second.word, second.score, second.day, second.tags) == (None, None, None, [])


def test_a_frame_comes_back_as_it_went(env):
    plain = frame()[["id", "word", "score", "flag"]].reset_index(drop=True)
    with on_local_engine():
        again = env.from_pandas(plain).to_pandas()
    pandas.testing.assert_frame_equal(again, plain)


def test_a_job_between_two_frames(env):
    output = Types.ROW_NAMED(["word", "length"], [Types.STRING(), Types.INT()])
    words = pandas.DataFrame({"word": ["one", "three", "five"]})
    with on_local_engine():
        result = env.from_pandas(words).map(lambda row: Row(row.word, len(row.word)), output_type=output).to_pandas()
    assert list(result.columns) == ["word", "length"]
    assert result.sort_values("word").to_dict("records") == [
        {"word": "five", "length": 4},
        {"word": "one", "length": 3},
        {"word": "three", "length": 5},
    ]
    assert str(result["length"].dtype) == "int32"


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([(1, "a")], {"f0": 1, "f1": "a"}),
        ([{"x": 1}], {"x": 1}),
        ([Row(x=1)], {"x": 1}),
        ([Row(1)], {"f0": 1}),
        ([7], {"value": 7}),
    ],
)
def test_records_without_a_declared_type_give_the_names_they_have(env, records, expected):
    with on_local_engine():
        assert env.from_collection(records).to_pandas().to_dict("records") == [expected]


def test_an_empty_result_has_its_columns(env):
    with on_local_engine():
        result = env.from_pandas(pandas.DataFrame({"id": [1]})).filter(lambda row: row.id > 1).to_pandas()
    assert (list(result.columns), len(result)) == (["id"], 0)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"x": [1, "a"]}, "values without a common type"),
        ({3: [1]}, r"column 3 is not text; rename it: df\.rename\(columns=str\)"),
        ({"x": pandas.to_timedelta(["1s"])}, "column 'x' has Arrow's type duration"),
        ({"x": [pandas.Timestamp(2024, 1, 1, nanosecond=1)]}, r"round them first, as in df\['t'\]"),
    ],
)
def test_a_column_that_no_stream_has_is_refused(env, columns, says):
    with pytest.raises(ConfigurationError, match=says):
        env.from_pandas(pandas.DataFrame(columns))


def test_anything_else_is_refused(env):
    with pytest.raises(TypeError, match="needs a pandas DataFrame, got list"):
        env.from_pandas([1])
    with pytest.raises(TypeError, match=r"a pandas DataFrame: use from_pandas\(df\)"):
        env.from_data_frame(frame())


def test_a_stream_without_end_is_refused(env, tmp_path):
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    clicks = env.from_source(lines.monitor_continuously(1000).build(), None, "clicks").map(lambda line: line)
    with pytest.raises(InvalidProgramError, match=r"operator 'Source: clicks'.* never ends: use execute_and_collect"):
        env.from_pandas(frame()).map(lambda row: row.word).union(clicks).to_pandas()
