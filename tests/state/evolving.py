"""What the tests of changed types share: a backend saved and restored, and a module whose classes change."""

import itertools
import json
import sys
import textwrap
import types
from dataclasses import replace

from tamias.functions.state_descriptors import ValueStateDescriptor
from tamias.state.snapshots import OperatorRestore
from tamias.state.state_files import write_state
from tamias.storage.memory import MemoryFiles
from tests.state.backends import BACKENDS, EVERYTHING, GROUPS

LABEL = "'count' (uid 'u1', id 0ab)"
MODULE = "evolving_program"


class Target:
    """Where a snapshot goes."""

    names = itertools.count()

    def __init__(self, store):
        self.store, self.bytes_written = store, 0

    def shared(self, label):
        return f"shared/{label}-{next(self.names)}"

    exclusive = shared

    def write(self, path, payload):
        return write_state(self.store, path, payload, 0)

    def __getattr__(self, name):  # a backend with more to ask finds it at the store
        return getattr(self.store, name)


def snapshot_of(backend):
    """What a checkpoint of this backend holds, and where."""
    store = MemoryFiles()
    captured = backend.snapshot(1)
    captured.key_groups = EVERYTHING
    files = captured.write(Target(store))
    infos = tuple(json_and_back(info) for info in backend.infos())
    return OperatorRestore("operator", (files,), (), infos, 1, GROUPS, LABEL), store


def json_and_back(info):
    """The info as it comes out of the metadata."""
    return replace(info, schema=json.dumps(json.loads(info.schema))) if info.schema else info


def restored(saved, backend="heap", key_type=None):
    """A new backend that starts from a snapshot."""
    made = BACKENDS[backend]()
    made.key_type = key_type
    restore, store = saved
    made.restore(restore, store, EVERYTHING)
    return made


def program(source):
    """Define the classes of a program anew: what was there before is gone, as in another release."""
    module = types.ModuleType(MODULE)
    exec("from dataclasses import *\nfrom typing import *\nfrom enum import *\n", module.__dict__)
    sys.modules[MODULE] = module
    exec(textwrap.dedent(source), module.__dict__)
    return module


INTO = [("heap", "heap"), ("rocksdb", "rocksdb"), ("heap", "rocksdb"), ("rocksdb", "heap")]
"""From which backend into which."""


def evolve(old_type, value, new_type, backend="heap", into=None):
    """A value written as one type and read as another."""
    before = BACKENDS[backend]()
    before.cell[0] = "key"
    before.value_state(ValueStateDescriptor("state", old_type)).update(value)
    after = restored(snapshot_of(before), into or backend)
    after.cell[0] = "key"
    return after.value_state(ValueStateDescriptor("state", new_type)).value()
