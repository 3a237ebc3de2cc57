"""The memory of a slot, from Flink's options. The numbers are what Flink 2.3 calculates from the same options."""

import pytest

from ekorn.common import Configuration
from ekorn.config.settings.memory_settings import MemoryParts, SlotResources, job_memory
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.slot_sharing_group import SlotSharingGroup
from ekorn.errors import ConfigurationError

MB = 1 << 20
FLINK = "taskmanager.memory."
NO_JVM = {
    "jvm-metaspace.size": "0", "jvm-overhead.min": "0", "jvm-overhead.max": "0", "network.min": "0", "network.max": "0",
    "framework.heap.size": "0", "framework.off-heap.size": "0",
}  # fmt: skip

# TaskExecutorProcessUtils.processSpecFromConfig of Flink 2.3: framework heap, task heap, framework off-heap, task
# off-heap, network, managed, metaspace, overhead.
OF_FLINK = [
    ({"process.size": "1728m"},
     (134217728, 402653174, 134217728, 0, 134217730, 536870920, 268435456, 201326592)),
    ({"process.size": "4g"},
     (134217728, 1530082070, 134217728, 0, 359703515, 1438814063, 268435456, 429496736)),
    ({"process.size": "1g"},
     (134217728, 26843542, 134217728, 0, 67108864, 241591914, 268435456, 201326592)),
    ({"process.size": "20g"},
     (134217728, 9797893994, 134217728, 0, 2013265950, 8053063800, 268435456, 1073741824)),
    ({"flink.size": "1280m"},
     (134217728, 402653174, 134217728, 0, 134217730, 536870920, 268435456, 201326592)),
    ({"process.size": "1728m", "flink.size": "1280m"},
     (134217728, 402653174, 134217728, 0, 134217730, 536870920, 268435456, 201326592)),
    ({"process.size": "4g", "managed.size": "1g"},
     (134217728, 1895154309, 134217728, 0, 359703515, 1073741824, 268435456, 429496736)),
    ({"process.size": "4g", "managed.fraction": "0.1"},
     (134217728, 2609192618, 134217728, 0, 359703515, 359703515, 268435456, 429496736)),
    ({"process.size": "4g", "task.heap.size": "1g"},
     (134217728, 1073741824, 134217728, 0, 816043761, 1438814063, 268435456, 429496736)),
    ({"flink.size": "4g", "task.heap.size": "1g", "managed.size": "512m"},
     (134217728, 1073741824, 134217728, 0, 2415919104, 536870912, 268435456, 507044758)),
    ({"task.heap.size": "1g", "managed.size": "512m"},
     (134217728, 1073741824, 134217728, 0, 208783135, 536870912, 268435456, 261807424)),
    ({"task.heap.size": "100m", "managed.size": "0"},
     (134217728, 104857600, 134217728, 0, 67108864, 0, 268435456, 201326592)),
    ({"task.heap.size": "100m", "task.off-heap.size": "50m", "managed.size": "20m"},
     (134217728, 104857600, 134217728, 52428800, 67108864, 20971520, 268435456, 201326592)),
    ({"task.heap.size": "20g", "managed.size": "20g"},
     (134217728, 21474836480, 134217728, 0, 4802012125, 21474836480, 268435456, 1073741824)),
    ({"process.size": "2g", **NO_JVM}, (0, 1288490176, 0, 0, 0, 858993472, 0, 0)),
    ({"task.heap.size": "100m", "managed.size": "50m", **NO_JVM}, (0, 104857600, 0, 0, 0, 52428800, 0, 0)),
    ({"process.size": "1728m", "jvm-overhead.fraction": "0.3", "network.fraction": "0.2", "network.max": "100m"},
     (134217728, 226660170, 134217728, 0, 104857600, 399968826, 268435456, 543581820)),
]  # fmt: skip


def memory(given, slots=None, groups=None):
    configuration = Configuration.from_dict({FLINK + key: value for key, value in given.items()})
    if slots is not None:
        configuration.set_integer("taskmanager.numberOfTaskSlots", slots)
    return job_memory(configuration, groups or {})


@pytest.mark.parametrize(("given", "parts"), OF_FLINK, ids=lambda each: " ".join(map(str, each)))
def test_the_parts_are_those_of_flink(given, parts):
    found = memory(given).other
    assert found.parts == MemoryParts(*parts)
    assert (found.process_bytes, found.managed_bytes) == (sum(parts), parts[5])
    assert found.parts.total_flink == sum(parts[:6])


def test_without_a_size_nothing_is_bounded():
    found = memory({}).other
    assert (found.process_bytes, found.managed_bytes) == (None, None)


def test_the_slots_of_a_task_manager_share_its_memory_equally():
    whole, share = memory({"process.size": "4g"}).other, memory({"process.size": "4g"}, 4).other
    assert share.process_bytes == pytest.approx((4 << 30) // 4, abs=8)
    assert share.managed_bytes == whole.managed_bytes // 4


def test_managed_memory_alone_bounds_rocksdb_alone():
    found = memory({"managed.size": "100m"}, 4).other
    assert (found.process_bytes, found.managed_bytes) == (None, 25 * MB)


def test_in_a_slot_that_is_too_small_for_a_jvm_the_parts_of_a_jvm_are_left_out():
    found = memory({"process.size": "300m"}).other  # Flink refuses this size
    assert found.process_bytes == 300 * MB
    assert found.managed_bytes == int(300 * MB * 0.4000000059604645)
    assert (found.parts.metaspace, found.parts.network) == (0, 0)


def test_a_slot_sharing_group_has_a_task_manager_of_its_own():
    found = memory(
        {"process.size": "1g"}, groups={"large": SlotResources(2.0, 1 << 30, None, 512 * MB), "any": SlotResources()}
    )
    assert found.of("large").parts == memory({"task.heap.size": "1g", "managed.size": "512m"}).other.parts
    assert found.of("large").cpu_cores == 2.0
    assert found.of("any") == found.of("default") == memory({"process.size": "1g"}).other


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"flink.size": "1g", "task.heap.size": "2g"}, "heap 2.0 GiB.*than taskmanager.memory.flink.size allows, 1.0"),
        ({"process.size": "1g", "managed.size": "2g"}, "managed 2.0 GiB.*more than taskmanager.memory.process.size"),
        ({"process.size": "4g", "task.heap.size": "2g", "managed.size": "3g"}, "than taskmanager.memory.process.size"),
        ({"task.heap.size": "1g"}, "set also taskmanager.memory.managed.size"),
        ({"managed.fraction": "1.5"}, "must be between 0 and 0.99"),
        ({"process.size": "600"}, "leaves 600 bytes to a slot; a slot needs at least 96.0 MiB"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_refused(given, refusal):
    with pytest.raises(ConfigurationError, match=refusal):
        memory(given)


def test_a_share_that_is_too_small_names_the_slots():
    with pytest.raises(ConfigurationError, match=r"leaves 75.0 MiB to a slot, of which each of 4 slots gets a share"):
        memory({"process.size": "300m"}, 4)


def test_the_graph_says_what_each_slot_may_use():
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"taskmanager.memory.process.size": "1g"})
    )
    env.set_parallelism(2)
    group = SlotSharingGroup.builder("heavy").set_cpu_cores(1.5).set_task_heap_memory_mb(2048).build()
    env.from_collection([1]).name("ones").map(lambda n: n).slot_sharing_group(group).print()
    graph = env.job_graph()
    limits = [graph.memory_of(slot).process_bytes for slot in range(graph.slot_count)]
    assert limits[0] == 1 << 30
    assert set(limits[1:]) == {memory({"task.heap.size": "2g", "managed.size": "0"}).other.process_bytes}
