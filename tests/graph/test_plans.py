"""The plan as JSON and as text."""

import json

from ekorn.common import Types
from ekorn.datastream import MemorySize, OutputTag, ProcessFunction, SlotSharingGroup, StreamExecutionEnvironment

TAG = OutputTag("odd")


class Split(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


def same(x):
    return x


def drawn():
    env = StreamExecutionEnvironment().set_parallelism(2)
    source = env.from_collection([(1, 2)], Types.TUPLE([Types.INT(), Types.INT()])).name("pairs")
    split = source.process(Split()).set_description("odd ones aside").uid("split")
    split.get_side_output(TAG).map(same)
    split.key_by([0, 1]).sum(1).print("total")
    split.partition_custom(lambda key, n: 0, same).map(same).slot_sharing_group("apart")
    return env


def test_the_json_plan_has_flinks_shape():
    env = StreamExecutionEnvironment().set_parallelism(2)
    env.from_collection([1]).name("numbers").map(same).set_description("twice").key_by(same).sum().rebalance().print()
    assert json.loads(env.get_execution_plan()) == {
        "nodes": [
            {
                "id": 1,
                "type": "Source: numbers",
                "pact": "Data Source",
                "contents": "Source: numbers",
                "parallelism": 1,
            },
            {
                "id": 2,
                "type": "Map",
                "pact": "Operator",
                "contents": "twice",
                "parallelism": 2,
                "predecessors": [{"id": 1, "ship_strategy": "REBALANCE", "side": "second"}],
            },
            {
                "id": 3,
                "type": "Reduce",
                "pact": "Operator",
                "contents": "Reduce",
                "parallelism": 2,
                "predecessors": [{"id": 2, "ship_strategy": "HASH", "side": "second"}],
            },
            {
                "id": 4,
                "type": "Sink: Print to Std. Out",
                "pact": "Data Sink",
                "contents": "Sink: Print to Std. Out",
                "parallelism": 2,
                "predecessors": [{"id": 3, "ship_strategy": "REBALANCE", "side": "second"}],
            },
        ]
    }


def test_operators_in_one_vertex_are_joined_by_forward():
    env = StreamExecutionEnvironment()
    env.from_collection([1]).map(same)
    nodes = json.loads(env.get_execution_plan())["nodes"]
    assert nodes[1]["predecessors"] == [{"id": 1, "ship_strategy": "FORWARD", "side": "second"}]


def test_explain_tells_the_whole_story():
    text = drawn().explain()
    assert text.startswith("Job 'Ekorn Streaming Job': 4 vertices on 3 levels, 4 slots, STREAMING\n")
    for part in (
        "slot-sharing group 'default': 2 slots",
        "slot-sharing group 'apart': 2 slots",
        "level 0\n  [0] Source: pairs\n      parallelism 1, max parallelism 1",
        "0. Source: pairs, id ",
        "gives TupleTypeInfo(Integer, Integer)",
        "PROCESS (odd ones aside), uid 'split'",
        "fed by 0 side output 'odd'",
        "HASH by fields 0, 1",
        "per key fields 0, 1",
        "CUSTOM by <lambda> (test_plans.py:",
        "of same (test_plans.py:",
        "REBALANCE",
        "slot group 'apart'",
        "max parallelism 128 (default)",
    ):
        assert part in text, f"{part!r} is not in\n{text}"


def test_explain_shows_what_slots_ask_for():
    env = StreamExecutionEnvironment()
    group = (
        SlotSharingGroup.builder("big")
        .set_cpu_cores(2)
        .set_task_heap_memory(MemorySize.of_mebi_bytes(512))
        .set_external_resource("gpu", 1)
        .build()
    )
    env.from_collection([1]).map(same).slot_sharing_group(group)
    assert "slot-sharing group 'big': 1 slot of 2 cores, 512 MiB heap, 1 gpu" in env.explain()


def test_looking_at_a_plan_runs_and_forgets_nothing():
    env = drawn()
    assert env.explain() == env.explain()
    assert env.get_execution_plan() == env.get_execution_plan()
