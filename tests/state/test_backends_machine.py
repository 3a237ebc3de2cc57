"""Jobs that go from one backend to another: whatever happens to them, their state is that of a plain dictionary.

The machines of `test_keyed_backends.py` (all kinds of state; snapshots that complete, are given up or overtaken;
restores at another parallelism; savepoints) and of `test_ttl_machine.py` (state that expires, under every
configuration, on clocks that go on and back), with a backend drawn anew whenever the job starts.
"""

import os

import pytest
from hypothesis import settings

from tamias.state.rocksdb import list_tables as rocksdb_lists
from tamias.state.rocksdb import map_tables as rocksdb_maps
from tests.state.backends import BACKENDS, cramped, heap, rocksdb
from tests.state.test_keyed_backends import KeyedBackendMachine
from tests.state.test_ttl_machine import TtlMachine

MORE = int(os.environ.get("TAMIAS_MORE_EXAMPLES", "1"))  # 10 after a change of a backend


@pytest.fixture(scope="module", autouse=True)
def the_lists_and_maps_of_a_few_elements_are_large_ones():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rocksdb_lists, "_PIECE", 2)
        patch.setattr(rocksdb_maps, "_EAGER", 2)
        yield


def case_of(machine, share):
    """A test case with a share of the usual examples: opening RocksDB takes its time."""
    case = machine.TestCase
    examples = max(MORE * settings.default.max_examples // share, 1)
    case.settings = settings(max_examples=examples, stateful_step_count=30)
    return case


class SwitchingMachine(KeyedBackendMachine):
    """Every start draws a backend: in memory, or RocksDB with many entries in memory, or with one."""

    backends = tuple(BACKENDS.values())


class SwitchingTtlMachine(TtlMachine):
    backends = (heap, rocksdb, cramped)


def expiring(kind):
    return case_of(type(f"Switching machine of {kind} state", (SwitchingTtlMachine,), {"kind": kind}), 8)


TestEveryKind = case_of(SwitchingMachine, 4)
TestValue, TestList, TestMap = expiring("value"), expiring("list"), expiring("map")
TestReducing, TestAggregating, TestFolding = expiring("reducing"), expiring("aggregating"), expiring("folding")
