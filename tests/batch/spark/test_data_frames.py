"""DataFrames of Spark in and out of DataSet programs."""

import pytest
from pyspark.sql import SparkSession

from ekorn.common import Types
from ekorn.dataset import ExecutionEnvironment
from ekorn.errors import JobExecutionError, UnsupportedOperationError
from ekorn.testing import collect_locally

ROWS = [(1, "a", 1.5, None), (2, "b", None, [1, 2]), (3, "a", -0.25, [])]
SCHEMA = "id long, word string, weight double, numbers array<int>"


@pytest.fixture(scope="module")
def session():
    ExecutionEnvironment.get_execution_environment().from_elements(1).count()  # starts the session of all tests
    return SparkSession.builder.getOrCreate()


def test_there_and_back(env, session):
    frame = session.createDataFrame(ROWS, SCHEMA).repartition(3)
    rows = env.from_data_frame(frame)
    assert sorted(rows.map(lambda row: (row.id, row.word, row.weight, row.numbers)).collect()) == ROWS
    assert sorted(rows.group_by("word").reduce_group(lambda group: [sum(row.id for row in group)]).collect()) == [2, 4]
    back = rows.filter(lambda row: row.id > 1).to_data_frame()
    assert back.schema == frame.schema
    assert sorted(map(tuple, back.collect())) == ROWS[1:]
    back.createOrReplaceTempView("back")
    assert session.sql("select sum(id) from back").first()[0] == 5


def test_rows_of_two_data_frames_meet(env, session):
    first = env.from_data_frame(session.createDataFrame([(1, "a"), (2, "b")], "id long, word string"))
    second = env.from_data_frame(session.range(2, 5))
    joined = first.join(second).where("id").equal_to("id").with_(lambda one, other: (one.word, other.id))
    assert joined.collect() == [("b", 2)]
    assert sorted(first.map(lambda row: row.id).union(second.map(lambda row: row.id)).collect()) == [1, 2, 2, 3, 4]


def test_an_empty_data_set_has_its_columns(env, session):
    frame = env.from_elements(("a", 1)).filter(lambda _: False).to_data_frame("word string, count long")
    assert frame.collect() == [] and frame.columns == ["word", "count"]


def test_a_data_frame_belongs_to_the_active_session_of_the_thread_that_asks_for_it(env, session):
    other = session.newSession()
    other.createDataFrame([(1,)], "x long").createOrReplaceTempView("only_there")  # makes the session active
    try:
        frame = env.from_elements((2,)).to_data_frame("x long")
        assert frame.sparkSession.sql("select x from only_there").first() == (1,)
    finally:
        session.createDataFrame([(1,)], "x long")


def test_a_failing_function_and_a_record_that_does_not_fit_are_named(env, session):
    with pytest.raises(JobExecutionError, match=r"'risky'.*record 0: ZeroDivisionError"):
        env.from_elements(0).map(lambda x: (1 // x,)).name("risky").to_data_frame("x long")
    frame = env.from_elements(("a",)).to_data_frame(Types.ROW_NAMED(["x"], [Types.LONG()]))
    with pytest.raises(Exception, match="'a'"):
        frame.collect()


def test_what_is_no_bounded_data_frame_is_refused(env, session):
    with pytest.raises(TypeError, match="DataFrame"):
        env.from_data_frame([1])
    with pytest.raises(UnsupportedOperationError, match="can be read only on Spark"):
        collect_locally(env.from_data_frame(session.range(1)))
