"""Shuffles that are left out, seen in the metrics of Spark's stages."""

import pytest
from pyspark import SparkContext

from ekorn.dataset import ExecutionEnvironment


def shuffled_bytes_of_stages(run):
    """Run a program; return how many bytes each of its stages has written for a shuffle."""
    context = SparkContext.getOrCreate()
    java_context = context._jsc.sc()
    as_java = context._jvm.scala.jdk.javaapi.CollectionConverters.asJava

    def complete():
        java_context.listenerBus().waitUntilEmpty()
        store = java_context.statusStore()
        quantiles, tasks = getattr(store, "stageList$default$4")(), getattr(store, "stageList$default$5")()
        stages = as_java(store.stageList(None, False, False, quantiles, tasks))
        return {each.stageId(): each.shuffleWriteBytes() for each in stages if each.status().toString() == "COMPLETE"}

    before = complete()
    run()
    return [written for stage, written in sorted(complete().items()) if stage not in before]


@pytest.fixture
def sales(env):
    ExecutionEnvironment.get_execution_environment().from_elements(1).count()  # starts Spark
    return env.generate_sequence(1, 1000).map(lambda n: (n % 50, n))


def shuffles(run):
    return [written > 0 for written in shuffled_bytes_of_stages(run)]


def test_a_group_on_partitioned_keys_adds_no_stage(sales):
    placed = sales.partition_by_hash(0)
    assert shuffles(placed.count) == [True, False]
    grouped = placed.filter(lambda sale: sale[1] > 10).group_by(0).reduce_group(lambda group: [max(group)])
    assert shuffles(grouped.count) == [True, False]
    assert shuffles(sales.group_by(0).reduce_group(lambda group: [max(group)]).group_by(0).sum(1).count) == [
        True,
        True,
        False,
    ]


def test_a_join_of_partitioned_inputs_shuffles_neither(sales):
    placed = sales.partition_by_hash(0)
    assert shuffles(placed.join(placed.distinct(0)).where(0).equal_to(0).count) == [True, False]


def test_forwarded_fields_leave_out_a_shuffle(sales):
    doubled = sales.group_by(0).sum(1).map(lambda sale: (sale[0], sale[1] * 2))
    assert shuffles(doubled.group_by(0).sum(1).count) == [True, True, False]
    doubled = sales.group_by(0).sum(1).map(lambda sale: (sale[0], sale[1] * 2)).with_forwarded_fields("f0")
    assert shuffles(doubled.group_by(0).sum(1).count) == [True, False]
