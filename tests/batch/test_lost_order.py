"""Where the order of records matters, Spark is told so, and a plan that begins anew counts nothing twice."""

import pytest

from ekorn.batch.planner.plan_runner import run_on
from ekorn.batch.program.runner import plans_run_by
from ekorn.dataset import ExecutionEnvironment
from ekorn.datastream.functions import MapFunction
from ekorn.testing.local_partitions import LocalRdds, LocalSuperstepEngine
from ekorn.types.factory import Types

NOT_ROLLED_BACK = [  # as the scheduler of Spark 4.3 says it
    "A shuffle map stage with indeterminate output was failed and retried. However, Spark cannot rollback the Result"
    "Stage 5 to re-process the input data, and has to fail this job.",
    "Task with indeterminate results from old attempt succeeded, aborting the stage ResultStage 5 to ensure data"
    " correctness.",
    "rollback failed due to: a stage",
    "Rollback failed due to: Not able to kill running tasks for stage 5 (collect)",
    "cannot rollback a running result stage, please re-run the query to ensure data correctness",
    "cannot rollback completed result stages 5, please re-run the query to ensure data correctness",
]


class ClusterRdds(LocalRdds):
    """Notes what Spark would be told on a cluster, and fails the jobs that it is asked to."""

    def __init__(self):
        super().__init__()
        self.ordered = []
        self.copies = []
        self.jobs = 0
        self.failures = {}  # what Spark says, by the number of the job

    def in_order(self, rdd):
        self.ordered.append(rdd)
        return rdd

    def may_change(self, rdd):
        return bool(self.ordered)

    def frame(self, rdd, row_type, *, copies):
        self.copies.append(copies)

    def collected(self, rdd):
        found = super().collected(rdd)
        self.jobs += 1
        if self.jobs in self.failures:
            raise RuntimeError(self.failures[self.jobs])
        return found


@pytest.fixture
def rdds():
    used = ClusterRdds()
    with plans_run_by(lambda plan, settings: run_on(used, LocalSuperstepEngine(), plan, settings, "0" * 32)):
        yield used


@pytest.fixture
def numbers():
    return ExecutionEnvironment().set_parallelism(2).generate_sequence(1, 20).partition_by_hash("*")


BY_ORDER = {
    "rebalance": lambda numbers: numbers.rebalance(),
    "a raised parallelism": lambda numbers: numbers.map(lambda x: x).set_parallelism(3),
    "map_partition": lambda numbers: numbers.map_partition(list),
    "zip_with_index": lambda numbers: numbers.zip_with_index(),
    "zip_with_unique_id": lambda numbers: numbers.zip_with_unique_id(),
    "sample": lambda numbers: numbers.sample(False, 0.5),
    "sample_with_size": lambda numbers: numbers.sample_with_size(False, 5),
    "first": lambda numbers: numbers.first(3),
    "first of groups": lambda numbers: numbers.group_by(lambda x: x % 2).first(3),
}
IN_ANY_ORDER = {
    "map": lambda numbers: numbers.map(lambda x: x).filter(lambda x: x > 3),
    "reduce of groups": lambda numbers: numbers.group_by(lambda x: x % 2).reduce(lambda a, b: a + b),
    "join": lambda numbers: numbers.join(numbers).where("*").equal_to("*"),
    "sort_partition": lambda numbers: numbers.sort_partition("*"),
}


@pytest.mark.parametrize("kind", BY_ORDER)
def test_spark_is_told_that_an_operator_after_a_shuffle_goes_by_the_order_of_records(rdds, numbers, kind):
    BY_ORDER[kind](numbers).collect()
    assert rdds.ordered


@pytest.mark.parametrize("kind", IN_ANY_ORDER)
def test_a_stage_whose_result_does_not_depend_on_the_order_is_computed_again_by_itself(rdds, numbers, kind):
    IN_ANY_ORDER[kind](numbers).collect()
    assert not rdds.ordered


def test_data_that_may_change_is_kept_in_the_files_of_a_shuffle(rdds, numbers):
    dealt = numbers.map_partition(sorted)
    twice = dealt.map(lambda x: x).union(dealt.map(lambda x: -x))
    assert sorted(twice.collect()) == sorted([*range(1, 21), *range(-20, 0)])
    assert rdds.shuffles == 2


@pytest.mark.parametrize(("deals", "copies"), [(False, 1), (True, 2)])
def test_a_data_frame_of_records_that_may_change_is_kept_twice(rdds, numbers, deals, copies):
    rows = (numbers.rebalance() if deals else numbers).map(lambda x: (x,))
    rows.to_data_frame(Types.ROW_NAMED(["x"], [Types.LONG()]))
    assert rdds.copies == [copies]


class Counting(MapFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_int_counter("seen")

    def map(self, value):
        self.seen.add(1)
        return value


@pytest.mark.parametrize("said", NOT_ROLLED_BACK)
def test_a_plan_begins_anew_when_spark_cannot_roll_back(rdds, numbers, said):
    rdds.failures = dict.fromkeys((1, 2, 3), said)
    assert sorted(numbers.rebalance().collect()) == list(range(1, 21))
    rdds.failures = dict.fromkeys(range(5, 9), said)
    with pytest.raises(RuntimeError, match=r"(?i)rollback|old attempt"):
        numbers.rebalance().collect()
    assert rdds.jobs == 8


def test_a_plan_that_fails_for_another_reason_does_not_begin_anew(rdds, numbers):
    rdds.failures = {1: "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times"}
    with pytest.raises(RuntimeError, match="failed 4 times"):
        numbers.rebalance().collect()
    assert rdds.jobs == 1


def test_a_plan_that_begins_anew_counts_what_its_iterations_saw_once(rdds):
    env = ExecutionEnvironment().set_parallelism(2)
    iteration = env.generate_sequence(1, 5).iterate(2)
    result = iteration.close_with(iteration.map(Counting()))
    rdds.failures = {2: NOT_ROLLED_BACK[0]}  # job 1 writes the initial data of the iteration, 2 reads its result
    assert sorted(result.collect()) == [1, 2, 3, 4, 5]
    assert rdds.jobs == 4
    job = env.get_last_job_execution_result()
    assert job is not None and job.get_accumulator_result("seen") == 10
