"""What `explain` and `get_execution_plan` say of a program."""

import json

import pytest

from ekorn.dataset import ExecutionEnvironment
from ekorn.errors import InvalidProgramError


@pytest.fixture
def env():
    return ExecutionEnvironment().set_parallelism(2)


def ways(env):
    nodes = json.loads(env.get_execution_plan())["nodes"]
    names = {node["id"]: node["contents"] for node in nodes}
    return {
        (names[each["id"]], node["contents"]): each["ship_strategy"] for node in nodes for each in node["predecessors"]
    }


def test_the_way_of_each_input(env, tmp_path):
    pairs = env.from_elements(("a", 1), ("b", 2)).name("pairs")
    names = env.from_elements(("a", "x")).name("names")
    placed = pairs.partition_by_hash(0).name("placed")
    sums = placed.group_by(0).reduce(lambda a, b: (a[0], a[1] + b[1])).name("sums")
    joined = sums.join(names).where(0).equal_to(0).name("joined")
    crossed = joined.cross(names).name("crossed")
    mapped = crossed.map(lambda x: x).name("mapped").with_broadcast_set(pairs, "all")
    mapped.rebalance().name("dealt").write_as_text(tmp_path / "out").name("file").set_parallelism(2)
    assert ways(env) == {
        ("pairs", "placed"): "Hash Partition on [0]",
        ("placed", "sums"): "Forward",
        ("sums", "joined"): "Hash Partition on [0]",
        ("names", "joined"): "Hash Partition on [0]",
        ("joined", "crossed"): "Forward",
        ("names", "crossed"): "Broadcast",
        ("crossed", "mapped"): "Forward",
        ("pairs", "mapped"): "Broadcast",
        ("mapped", "dealt"): "Rebalance",
        ("dealt", "file"): "Forward",
    }


def test_an_annotation_saves_a_way(env, tmp_path):
    pairs = env.from_elements(("a", 1), ("b", 2)).partition_by_hash(0)
    mapped = pairs.map(lambda x: (x[0], -x[1])).name("mapped").with_forwarded_fields("f0")
    mapped.group_by(0).reduce_group(lambda group: [len(list(group))]).name("counts").write_as_text(tmp_path / "out")
    assert ways(env)["mapped", "counts"] == "Forward"


def test_lines_for_people(env):
    numbers = env.generate_sequence(1, 3).name("numbers")
    text = numbers.partition_by_range(lambda x: x).name("ranges").zip_with_index().name("index").explain()
    assert text.splitlines()[:3] == [
        "1: numbers, parallelism 2",
        "2: ranges, parallelism 2 <- 1 (Range Partition on [a key selector])",
        "3: index, parallelism 2 <- 2 (Forward)",
    ]


def test_kinds_of_nodes(env, tmp_path):
    numbers = env.generate_sequence(1, 3)
    iteration = numbers.iterate(3)
    iteration.close_with(iteration.map(lambda x: x + 1)).write_as_text(tmp_path / "out")
    kinds = [node["type"] for node in json.loads(env.get_execution_plan())["nodes"]]
    assert kinds == ["source", "bulk_iteration", "sink"]


def test_a_program_without_sinks_has_no_plan(env):
    with pytest.raises(InvalidProgramError, match="no sink"):
        env.get_execution_plan()
