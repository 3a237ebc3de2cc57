"""Slot-sharing groups and memory sizes as values."""

import pytest

from ekorn.datastream import MemorySize, SlotSharingGroup


def test_memory_sizes():
    size = MemorySize.of_mebi_bytes(3 * 1024)
    assert (size.get_bytes(), size.get_kibi_bytes(), size.get_mebi_bytes()) == (3 * 2**30, 3 * 2**20, 3 * 2**10)
    assert (size.get_gibi_bytes(), size.get_tebi_bytes()) == (3, 0)
    assert MemorySize(bytes_size=5) < MemorySize(6) <= MemorySize(6)
    assert len({MemorySize(5), MemorySize(5)}) == 1
    assert (str(size), str(MemorySize(1000)), str(MemorySize(0))) == ("3 GiB", "1000 bytes", "0 bytes")
    with pytest.raises(ValueError, match="at least 0"):
        MemorySize(-1)


def test_a_group_keeps_what_it_is_told():
    group = (
        SlotSharingGroup.builder("g")
        .set_cpu_cores(1.5)
        .set_task_heap_memory_mb(100)
        .set_task_off_heap_memory_mb(10)
        .set_managed_memory(MemorySize.of_mebi_bytes(7))
        .set_external_resource("gpu", 2)
        .build()
    )
    assert group.get_name() == "g"
    assert group.get_cpu_cores() == 1.5
    assert group.get_task_heap_memory() == MemorySize.of_mebi_bytes(100)
    assert group.get_task_off_heap_memory() == MemorySize.of_mebi_bytes(10)
    assert group.get_managed_memory() == MemorySize.of_mebi_bytes(7)
    assert group.get_external_resources() == {"gpu": 2.0}
    assert group != SlotSharingGroup.builder("g").build()
    assert isinstance(hash(group), int)


def test_a_group_may_ask_for_nothing():
    group = SlotSharingGroup.builder("g").build()
    assert group.get_cpu_cores() is None
    assert group.get_managed_memory() is None
    assert group.resources_text == ""


def test_a_group_that_asks_says_cores_and_heap():
    with pytest.raises(ValueError, match="CPU cores and heap memory"):
        SlotSharingGroup.builder("g").set_managed_memory_mb(5).build()
    with pytest.raises(ValueError, match="above 0"):
        SlotSharingGroup.builder("g").set_cpu_cores(0)
    with pytest.raises(ValueError, match="heap memory above 0"):
        SlotSharingGroup.builder("g").set_cpu_cores(1.0).set_task_heap_memory(MemorySize(bytes_size=0))
    with pytest.raises(ValueError, match="non-empty"):
        SlotSharingGroup.builder("")
