"""Operators that take records one by one run as one generated loop, and errors still name operator and record."""

import pytest

from ekorn.dataset import ExecutionEnvironment
from ekorn.errors import JobExecutionError
from ekorn.testing import on_local_engine


@pytest.fixture
def numbers():
    with on_local_engine():
        yield ExecutionEnvironment.get_execution_environment().set_parallelism(2).generate_sequence(1, 20)


def halves(number):
    yield number / 2
    yield number // (number - 7)


@pytest.mark.parametrize(
    ("draw", "operator", "record"),
    [
        (lambda n: n.map(lambda x: x + 1).map(lambda x: 1 // (x - 8)).name("second"), "second", "8"),
        (lambda n: n.map(lambda x: -x).filter(lambda x: 1 // (x + 7)).name("kept"), "kept", "-7"),
        (lambda n: n.filter(lambda x: x > 1).flat_map(halves).name("halves").map(str), "halves", "7"),
        (lambda n: n.flat_map(lambda x: [x, -x]).map(lambda x: 1 // (x + 7)).name("inverse"), "inverse", "-7"),
        (lambda n: n.map(lambda x: (x,)).project(1).name("project"), "project", r"\(\d+,\)"),
    ],
)
def test_a_failing_operator_is_named_with_its_record(numbers, draw, operator, record):
    with pytest.raises(JobExecutionError, match=rf"'{operator}' .*record {record}: \w+Error"):
        draw(numbers).collect()


def test_the_traceback_begins_in_the_function_of_the_program(numbers):
    with pytest.raises(JobExecutionError) as caught:
        numbers.map(lambda x: x).flat_map(halves).collect()
    assert "yield number // (number - 7)" in str(caught.value)
    assert "tasks/fused_loop" not in str(caught.value) and "operators of one loop" not in str(caught.value)


def test_more_operators_than_one_loop_holds(numbers):
    long = numbers
    for _ in range(30):
        long = (
            long.flat_map(lambda x: [x])
            .filter(lambda x: True)
            .map(lambda x: x + 1)
            .flat_map(lambda x: None if x > 49 else [x])
        )
    assert sorted(long.collect()) == list(range(31, 50))
