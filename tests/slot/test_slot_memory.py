"""What a slot does about its memory: limits, messages, and the estimated sizes of states."""

from __future__ import annotations

from collections import UserDict, deque
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from ekorn.common import Types
from ekorn.config.settings.memory_settings import MemoryParts, SlotMemory
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import SlotMemoryError
from ekorn.functions.record_functions import WrappingFunction
from ekorn.slot.event_reports import Reports
from ekorn.slot.memory import memory_watch
from ekorn.slot.memory.function_objects import function_objects, kept_in_memory
from ekorn.slot.memory.memory_limit import Due, MemoryLimit, memory_text
from ekorn.slot.memory.memory_watch import MemoryWatch
from ekorn.slot.memory.state_sizes import heap_bytes
from ekorn.slot_protocol.diagnostics import StateSize
from ekorn.slot_protocol.slot_events import SlotEnds
from tests.state.backends import EVERYTHING, heap, rocksdb

MB = 1 << 20
OF_100_MB = SlotMemory(MemoryParts(task_heap=60 * MB, managed=40 * MB), managed_bytes=40 * MB)


def test_a_slot_warns_once_until_its_memory_has_fallen_and_fails_at_its_limit():
    limit = MemoryLimit(OF_100_MB)
    uses = [79, 80, 99, 73, 80, 71, 80, 99, 100]
    expected = [None, Due.WARN, None, None, None, None, Due.WARN, None, Due.FAIL]
    found = []
    for mb in uses:
        found.append(limit.due(mb * MB))
        limit.warned |= found[-1] is Due.WARN
    assert found == expected


def test_a_warning_stays_due_until_it_was_given():
    limit = MemoryLimit(OF_100_MB)
    assert [limit.due(mb * MB) for mb in (80, 99)] == [Due.WARN, Due.WARN]


def test_a_slot_without_a_limit_does_nothing():
    assert MemoryLimit(SlotMemory(None, 40 * MB)).due(1 << 50) is None


def test_the_message_names_what_there_is_and_what_to_raise():
    states = [StateSize("carts", "shop", "op-1", 50 * MB, 1_000), StateSize("seen", "dedup", "op-2", 5 * MB, 20)]
    text = memory_text(OF_100_MB, 90 * MB, 20 * MB, states)
    assert text == (
        "it uses 90.0 MiB of the 100.0 MiB that it may use: about 55.0 MiB is state on the heap, 20.0 MiB is "
        "RocksDB's, the rest, about 15.0 MiB, is Python, the objects of functions and records in flight; largest "
        "states: 'carts' of operator 'shop' (about 50.0 MiB in 1,000 entries), 'seen' of operator 'dedup' (about "
        "5.0 MiB in 20 entries); raise taskmanager.memory.process.size or use more slots"
    )
    on_heap_alone = memory_text(OF_100_MB, 90 * MB, None, states)
    assert on_heap_alone.endswith(
        "raise taskmanager.memory.process.size, use more slots, or keep state in RocksDB (state.backend.type: rocksdb)"
    )
    nothing_kept = memory_text(OF_100_MB, 90 * MB, None, [])
    assert "no state is on the heap" in nothing_kept and nothing_kept.endswith("process.size or use more slots")


def test_the_message_names_what_functions_keep_and_advises_against_it():
    cache = StateSize("Enrich.cache", "enrich", "op-2", 70 * MB, 1, is_state=False)
    carts = StateSize("carts", "shop", "op-1", 5 * MB, 1_000)
    assert memory_text(OF_100_MB, 90 * MB, None, [cache, carts]) == (
        "it uses 90.0 MiB of the 100.0 MiB that it may use: about 5.0 MiB is state on the heap, about 70.0 MiB is "
        "objects that functions keep outside of state, the rest, about 15.0 MiB, is Python and records in flight; "
        "largest states: 'carts' of operator 'shop' (about 5.0 MiB in 1,000 entries); largest objects: 'Enrich.cache' "
        "of operator 'enrich' (about 70.0 MiB in 1 entry); raise taskmanager.memory.process.size, or keep less in "
        "functions: what is not in state is in no checkpoint either"
    )


class Hosted:
    """A slot whose process uses what the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, memory: SlotMemory) -> None:
        self.slot, self.memory, self.subtasks = 3, memory, {}
        self.used_bytes = self.after_collection = 0
        self.has_operators = True
        self.did: list[Any] = []
        self.hints: list[str] = []
        self.reports = Reports()
        monkeypatch.setattr(memory_watch, "collect", lambda generation: self.did.append(f"collect {generation}"))
        monkeypatch.setattr(memory_watch, "resident_bytes", lambda pid: self.after_collection)
        monkeypatch.setattr(memory_watch, "_REPORT_S", 0.0)
        host: Any = self
        self.watch = MemoryWatch(host, self.reports, lambda: self.did.append("end"))

    def hint_at_memory(self, operator_id: str | None, text: str) -> bool:
        if self.has_operators:
            self.did.append(text.partition(":")[0])
            self.hints.append(text)
        return self.has_operators

    def take_hints(self) -> tuple[str, ...]:
        taken, self.hints = tuple(self.hints), []
        return taken


def test_garbage_is_collected_before_a_slot_ends(monkeypatch):
    hosted = Hosted(monkeypatch, OF_100_MB)
    hosted.after_collection = 70 * MB
    hosted.watch.look(120 * MB)
    assert hosted.did == ["collect 2"], "that was enough"
    hosted.after_collection = 110 * MB
    hosted.watch.look(120 * MB)
    assert hosted.did == ["collect 2", "collect 2", "the memory of slot 3 is short", "end"]
    event = hosted.reports.get(0.0)
    assert isinstance(event, SlotEnds) and isinstance(event.error, SlotMemoryError)
    assert str(event.error).startswith("slot 3 has ended, because it uses 110.0 MiB of the 100.0 MiB")
    (hint,) = event.hints
    assert str(hint).startswith("the memory of slot 3 is short: it uses 110.0 MiB"), "no look came between the limits"


def test_the_last_event_of_a_slot_has_the_warning_that_it_overtakes(monkeypatch):
    hosted = Hosted(monkeypatch, OF_100_MB)
    hosted.watch.look(90 * MB)
    hosted.after_collection = 110 * MB
    hosted.watch.look(110 * MB)
    assert hosted.did == ["the memory of slot 3 is short", "collect 2", "end"], "it warns once"
    event = hosted.reports.get(0.0)
    assert isinstance(event, SlotEnds)
    (hint,) = event.hints
    assert str(hint).startswith("the memory of slot 3 is short: it uses 90.0 MiB")


def test_a_warning_waits_for_an_operator_whose_hint_it_can_be(monkeypatch):
    hosted = Hosted(monkeypatch, OF_100_MB)
    hosted.has_operators = False
    hosted.watch.look(90 * MB)
    assert hosted.did == []
    hosted.has_operators = True
    hosted.watch.look(91 * MB)
    hosted.watch.look(92 * MB)
    assert hosted.did == ["the memory of slot 3 is short"]


def test_the_last_event_of_a_slot_overtakes_those_that_wait(monkeypatch):
    hosted = Hosted(monkeypatch, OF_100_MB)
    waiting: Any = SimpleNamespace()
    hosted.reports.put(waiting)
    hosted.after_collection = 110 * MB
    hosted.watch.look(110 * MB)
    last = hosted.reports.get(0.0)
    assert isinstance(last, SlotEnds) and not hosted.reports.last_sent.is_set()
    hosted.reports.sent(last)
    assert hosted.reports.last_sent.is_set()
    assert hosted.reports.get(0.0) is waiting


def test_a_deployment_brings_another_limit(monkeypatch):
    hosted = Hosted(monkeypatch, SlotMemory())
    hosted.watch.look(90 * MB)
    assert hosted.did == []
    hosted.memory = OF_100_MB
    hosted.watch.look(90 * MB)
    assert hosted.did == ["the memory of slot 3 is short"]


# ---------------------------------------------------------------------------------------------------- sizes of states


class Order:
    def __init__(self, size: int) -> None:
        self.lines = [bytes(size)]


@pytest.mark.parametrize(
    ("entries", "payload"),
    [
        ({n: bytes(1000) for n in range(10_000)}, 10_000_000),
        ([bytes(1000)] * 500, 500_000),
        ({n: (n, [bytes(500), {"a": bytes(500)}]) for n in range(100)}, 100_000),
        ({n: Order(1000) for n in range(100)}, 100_000),
        ({n: deque([bytes(100)] * 1000) for n in range(10)}, 1_000_000),
        ({n: {m: bytes(1000) for m in range(100)} for n in range(10)}, 1_000_000),
        ({n: bytes(2000 if n >= 500 else 0) for n in range(1000)}, 1_000_000),  # its oldest entries are small
    ],
    ids=["dictionary", "list", "nested", "objects", "deques", "maps", "grown"],
)
def test_the_size_of_a_state_is_estimated_with_what_its_entries_refer_to(entries, payload):
    assert payload < heap_bytes(entries) < 1.6 * payload


def test_an_object_that_refers_to_itself_ends_somewhere():
    entry: list[Any] = []
    entry.append(entry)
    assert heap_bytes({1: entry}) > 0


@pytest.mark.parametrize("make", [heap, rocksdb])
def test_a_backend_tells_what_it_has_on_the_heap(make):
    backend = make(EVERYTHING)
    try:
        values = backend.state(ValueStateDescriptor("value", Types.STRING()))
        for key in range(20):
            backend.cell[0] = key
            values.update("v" * 1000)
        operator = SimpleNamespace(
            operator=SimpleNamespace(name="shop", id="op-1"),
            states=SimpleNamespace(on_heap=lambda: {"offsets": [1, 2]}),
            backend=backend,
            functions=lambda: (),
        )
        subtask: Any = SimpleNamespace(operators=[operator])
        largest, smallest = kept_in_memory([subtask])
        assert (largest.name, largest.operator_name, largest.entries) == ("value", "shop", 20)
        assert 20_000 < largest.size_bytes < 40_000
        assert (smallest.name, smallest.entries) == ("offsets", 2)
    finally:
        backend.close()


# ---------------------------------------------------------------------------------------------- objects of functions

GLOBAL_CACHE = {n: bytes(1000) for n in range(2000)}


class Lively(UserDict[int, bytes]):
    """Changes whenever somebody looks at its entries, as a cache may."""

    def __iter__(self) -> Any:
        raise AssertionError("the function may use it at this moment")


class Enrich:
    def __init__(self) -> None:
        self.table = numpy.zeros(250_000)
        self.lively = Lively()
        self.lively.data = {n: bytes(1000) for n in range(1500)}
        self.cache = {n: bytes(1000) for n in range(3000)}
        self.model = Order(4_000_000)
        self.small = [1, 2, 3]
        self.own = MemoryLimit(OF_100_MB)
        self.own.table = GLOBAL_CACHE  # type: ignore[attr-defined]

    def one(self, value: Any) -> Any:
        return value


def closing_over(seen: list[bytes]) -> Any:
    def function(value: Any) -> Any:
        seen.append(value)
        return len(GLOBAL_CACHE), unassigned

    if not seen:
        unassigned = 1
    return function


ENRICHED = {("Enrich.cache", 3000), ("Enrich.model", 1), ("Enrich.table", 1), ("Enrich.lively", 1)}


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (Enrich(), ENRICHED),
        (Enrich().one, ENRICHED),
        (WrappingFunction(Enrich()), ENRICHED),
        (closing_over([bytes(1000)] * 1500), {("seen", 1500), ("GLOBAL_CACHE", 2000)}),
        (len, set()),
    ],
    ids=["object", "bound method", "wrapped", "plain", "builtin"],
)
def test_what_a_function_keeps_is_found_by_its_name(function, expected):
    operator = SimpleNamespace(operator=SimpleNamespace(name="enrich", id="op-2"), functions=lambda: [function])
    subtask: Any = SimpleNamespace(operators=[operator])
    found = function_objects([subtask])
    assert {(each.name, each.entries) for each in found} == expected
    assert all((each.operator_name, each.operator_id, each.is_state) == ("enrich", "op-2", False) for each in found)
    assert all(1_000_000 < each.size_bytes < 5_000_000 for each in found)
