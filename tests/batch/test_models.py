"""Every transformation against its model, in process: empty inputs, one partition and many, skew, spilled groups."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.batch.planner.plan_runner import run_on
from ekorn.batch.program.runner import plans_run_by
from ekorn.dataset import ExecutionEnvironment
from ekorn.testing.local_partitions import LocalRdds, LocalSuperstepEngine
from tests.batch.generated_records import RECORDS
from tests.batch.models import CASES, same
from tests.examples_by_profile import examples


def on_partitions(memory_mb):
    return plans_run_by(
        lambda plan, settings: run_on(LocalRdds(memory_mb), LocalSuperstepEngine(), plan, settings, "0" * 32)
    )


@pytest.mark.parametrize("name", CASES)
@given(xs=RECORDS, ys=RECORDS, parallelism=st.sampled_from([1, 3, 7]), spills=st.booleans())
def test_transformation_equals_its_model(name, xs, ys, parallelism, spills):
    env = ExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    # The map hides the types: programs whose keys have different types are refused, and here they may meet by chance.
    a, b = (env.from_collection(records).map(lambda record: record) for records in (xs, ys))
    result, expected = CASES[name](a, b, xs, ys)
    with on_partitions(0 if spills else 1 << 20):
        found = result.collect()
    assert same(found, expected), (found, expected)


test_transformation_equals_its_model = settings(max_examples=examples(15))(test_transformation_equals_its_model)
