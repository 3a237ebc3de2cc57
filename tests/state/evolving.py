"""Helpers for the tests of changed types: save and restore a backend, and a module whose classes change."""

import itertools
import json
import sys
import textwrap
import types
from dataclasses import replace

from ekorn.functions.state.state_descriptors import ValueStateDescriptor
from ekorn.state.canonical_format import PAYLOAD_BYTES
from ekorn.state.snapshots import OperatorRestore
from ekorn.state.state_files import write_state
from ekorn.storage.memory import MemoryFiles
from tests.state.backends import BACKENDS, EVERYTHING, GROUPS

LABEL = "'count' (uid 'u1', id 0ab)"
MODULE = "evolving_program"


class Target:
    """The target of a snapshot: files in memory."""

    names = itertools.count()
    payload_bytes = PAYLOAD_BYTES

    def __init__(self, store):
        self.store, self.bytes_written = store, 0

    def shared(self, label):
        return f"shared/{label}-{next(self.names)}"

    exclusive = shared

    def write(self, path, payload):
        return write_state(self.store, path, payload, 0)

    def __getattr__(self, name):  # any other attribute is the store's
        return getattr(self.store, name)


def snapshot_of(backend):
    """Take a checkpoint of a backend; return what restores it, and the store."""
    store = MemoryFiles()
    captured = backend.snapshot(1)
    captured.key_groups = EVERYTHING
    files = captured.write(Target(store))
    infos = tuple(json_and_back(info) for info in backend.infos())
    return OperatorRestore("operator", (files,), (), infos, 1, GROUPS, LABEL), store


def json_and_back(info):
    """Return the info as the metadata of a checkpoint returns it."""
    return replace(info, schema=json.dumps(json.loads(info.schema))) if info.schema else info


def restored(saved, backend="heap", key_type=None):
    """Return a new backend restored from a snapshot."""
    made = BACKENDS[backend]()
    made.key_type = key_type
    restore, store = saved
    made.restore(restore, store, EVERYTHING)
    return made


def program(source):
    """Replace the classes of a program, as another version of it would."""
    module = types.ModuleType(MODULE)
    exec("from dataclasses import *\nfrom typing import *\nfrom enum import *\n", module.__dict__)
    sys.modules[MODULE] = module
    exec(textwrap.dedent(source), module.__dict__)
    return module


INTO = [("heap", "heap"), ("rocksdb", "rocksdb"), ("heap", "rocksdb"), ("rocksdb", "heap")]
"""Pairs of backends: from which one into which."""


def evolve(old_type, value, new_type, backend="heap", into=None):
    """Write a value as one type and read it as another."""
    before = BACKENDS[backend]()
    before.cell[0] = "key"
    before.state(ValueStateDescriptor("state", old_type)).update(value)
    after = restored(snapshot_of(before), into or backend)
    after.cell[0] = "key"
    return after.state(ValueStateDescriptor("state", new_type)).value()
