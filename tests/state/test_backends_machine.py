"""A job that changes its backend with every restart always has the state of a plain dictionary.

The tests run the machines of `keyed_machine.py` (all kinds of state; snapshots that complete, are aborted or
subsumed; restores at another parallelism; savepoints) and of `ttl_machine.py` (state that expires, under every
configuration, on clocks that run forward and back). Every start of the job draws a backend.
"""

import pytest
from hypothesis import settings

from ekorn.state.rocksdb import list_tables as rocksdb_lists
from ekorn.state.rocksdb import map_tables as rocksdb_maps
from tests.state.backends import BACKENDS, cramped, heap, rocksdb, timers_on_heap
from tests.state.keyed_machine import KeyedBackendMachine, TimerMachine
from tests.state.ttl_machine import TtlMachine


@pytest.fixture(scope="module", autouse=True)
def the_lists_and_maps_of_a_few_elements_are_large_ones():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rocksdb_lists, "_PIECE", 2)
        patch.setattr(rocksdb_maps, "_EAGER", 2)
        yield


def case_of(machine, share):
    """Return a test case with a part of the usual examples, because opening RocksDB is slow."""
    case = machine.TestCase
    examples = max(settings().max_examples // share, 1)
    case.settings = settings(max_examples=examples, stateful_step_count=30)
    return case


class SwitchingMachine(KeyedBackendMachine):
    """Draw a backend with every start: the heap, or RocksDB with many entries in use, or with one."""

    backends = tuple(BACKENDS.values())


class SwitchingTtlMachine(TtlMachine):
    backends = (heap, rocksdb, cramped)


def expiring(kind):
    return case_of(type(f"Switching machine of {kind} state", (SwitchingTtlMachine,), {"kind": kind}), 8)


class SwitchingTimerMachine(TimerMachine):
    backends = (heap, rocksdb, cramped, cramped, timers_on_heap)


TestEveryKind = case_of(SwitchingMachine, 4)
TestTimers = case_of(SwitchingTimerMachine, 2)
TestValue, TestList, TestMap = expiring("value"), expiring("list"), expiring("map")
TestReducing, TestAggregating, TestFolding = expiring("reducing"), expiring("aggregating"), expiring("folding")
