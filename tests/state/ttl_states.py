"""A backend with its own clock and one state that expires, for the tests of time to live."""

from typing import Any, ClassVar

import pytest

from ekorn.clock import ManualClock
from ekorn.common.time import Time
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.state.snapshots import OperatorRestore
from ekorn.storage.memory import MemoryFiles
from tests.state.backends import EVERYTHING, heap, rocksdb
from tests.state.expiring import GROUPS, TTL_MS, Target, handle_of

BACKENDS = {"heap": heap, "rocksdb": rocksdb}
ON_HEAP = pytest.mark.parametrize("backends", ["heap"], indirect=True)  # RocksDB's cleanup: test_rocksdb_ttl.py


@pytest.fixture(autouse=True, params=list(BACKENDS))
def backends(request):
    """Run every test on all backends, unless a test chooses its backends."""
    made = []

    def make(*args, **more):
        made.append(BACKENDS[request.param](*args, **more))
        return made[-1]

    Kept.make = staticmethod(make)
    yield make
    for backend in made:
        backend.close()


def builder(ttl_ms=TTL_MS):
    """Configure no background cleanup, so that only reads remove entries."""
    return StateTtlConfig.new_builder(Time.milliseconds(ttl_ms)).disable_cleanup_in_background()


class Kept:
    """A backend with its own clock and one state."""

    make: ClassVar[Any]

    def __init__(self, kind, configured=None, *, clock=None, incremental=True, restored=None, windowed=False):
        self.kind = kind
        self.clock = clock or ManualClock()
        self.backend = Kept.make(EVERYTHING, self.clock, incremental=incremental)
        if restored is not None:
            self.backend.restore(*restored, EVERYTHING)
        states = self.backend.in_windows("w/") if windowed else self.backend
        self.cell = self.backend.window_cell if windowed else self.backend.cell
        self.cell[0] = ("key", 0) if windowed else "key"
        self.state = handle_of(states, kind, (configured or builder()).build())

    def at(self, now_ms):
        self.clock.set_ms(now_ms)
        return self.state

    def write(self, value, entry="m"):
        if self.kind == "value":
            self.state.update(value)
        elif self.kind == "map":
            self.state.put(entry, value)
        else:
            self.state.add(value)

    def fill(self, count):
        """Write a value under each of some keys."""
        for key in range(count):
            self.cell[0] = key
            self.write("v")
        self.cell[0] = "key"

    def read(self, entry="m"):
        if self.kind == "value":
            return self.state.value()
        if self.kind == "map":
            return self.state.get(entry)
        if self.kind == "list":
            found = list(self.state.get())
            return found[0] if found else None  # the tests that use this write one element
        return self.state.get()

    def snapshot(self, checkpoint_id=1, store=None):
        """Take a snapshot; return what a restore needs."""
        store = store or MemoryFiles()
        captured = self.backend.snapshot(checkpoint_id)
        captured.key_groups = EVERYTHING
        files = captured.write(Target(store))
        return OperatorRestore("operator", (files,), (), self.backend.infos(), checkpoint_id, GROUPS), store

    @property
    def physical(self):
        return sorted(self.backend.keys(self.kind))
