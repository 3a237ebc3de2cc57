"""Value states as vectors: the values of a dictionary, on every backend, after any snapshots, restores and clears."""

import itertools
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.columns.row_columns import RowColumns
from ekorn.common import Types
from ekorn.errors import StateError
from ekorn.functions.state.state_descriptors import ValueStateDescriptor
from ekorn.keygroups import key_group, key_group_range, state_key, subtask_of
from ekorn.state.column_table import KeyValues
from ekorn.state.declared import declare
from ekorn.state.heap.heap_backend import HeapStateBackend
from ekorn.state.rocksdb.tables import Shared
from ekorn.state.snapshots import OperatorRestore
from ekorn.state.value_vectors import KeyVectors, ValueVectors
from ekorn.storage.memory import MemoryFiles
from ekorn.table import DataTypes
from tests.examples_by_profile import examples
from tests.state.backends import EVERYTHING, GROUPS, SMALL, cramped, heap, rocksdb
from tests.state.keyed_machine import Target

BACKENDS = {"heap": heap, "rocksdb": rocksdb, "cramped": cramped}
KEY = DataTypes.ROW([DataTypes.FIELD("k", DataTypes.INT())])
STATES: dict[str, Any] = {
    "n": (Types.LONG(), np.int64, int),
    "f": (Types.DOUBLE(), np.float64, lambda n: n / 4),
    "t": (Types.STRING(), object, lambda n: f"text {n}"),
}


class InVectors:
    """The states in vectors."""

    def __init__(self, backend, *, tracked=True):
        self.keys = KeyVectors(RowColumns(KEY).schema.types, KeyValues(KEY))
        self.tables = {}
        for name, (kind, dtype, _) in STATES.items():
            declared = declare(ValueStateDescriptor(name, kind), "value", backend.key_type)
            self.tables[name] = ValueVectors(declared, self.keys, dtype, tracked=tracked)
            backend.adopt(self.tables[name])

    def write(self, name, entries):
        numbers = self.keys.numbers([pa.array([k for (k,) in entries], pa.int32())])
        table = self.tables[name]
        values, present = table.read(numbers)
        for at, value in enumerate(entries.values()):
            present[at] = value is not None
            if value is not None:
                values[at] = STATES[name][2](value)
        table.write(numbers, values, present)


class OnRows:
    """The states of a function of rows."""

    def __init__(self, backend):
        self.cell = backend.cell
        self.states = {n: backend.state(ValueStateDescriptor(n, kind)) for n, (kind, _, _) in STATES.items()}

    def write(self, name, entries):
        for key, value in entries.items():
            self.cell[0] = state_key(key)
            self.states[name].update(None if value is None else STATES[name][2](value))


class Life:
    """The subtasks of one attempt, on one backend and in one form."""

    def __init__(self, make, form, parallelism, stored=None, store=None):
        self.ranges = [key_group_range(GROUPS, parallelism, index) for index in range(parallelism)]
        self.backends = [make(groups) for groups in self.ranges]
        for backend, groups in zip(self.backends, self.ranges, strict=True):
            if stored is not None:
                backend.restore(OperatorRestore("op", tuple(stored), max_parallelism=GROUPS), store, groups)
        self.forms = [form(backend) for backend in self.backends]

    def write(self, name, entries):
        mine = defaultdict(dict)
        for key, value in entries.items():
            mine[subtask_of(key_group(key, GROUPS), GROUPS, len(self.ranges))][key] = value
        for index, part in mine.items():
            self.forms[index].write(name, part)

    def snapshot(self, how, number, target):
        captured = [getattr(backend, how)(number) for backend in self.backends]
        for each, groups in zip(captured, self.ranges, strict=True):
            each.key_groups = groups
        return captured

    def entries(self):
        return {n: {k: v for b in self.backends for k, v in b.entries(n)} for n in STATES}

    def close(self):
        for backend in self.backends:
            backend.close()


writes = st.tuples(
    st.sampled_from([*STATES]),
    st.dictionaries(st.tuples(st.integers(0, 30)), st.none() | st.integers(-9, 9), min_size=1, max_size=20),
)
sweeps = st.tuples(st.just("many"), st.integers(1, 3))  # keys that come and go, so that numbers are given again
moves = st.tuples(
    st.sampled_from([*BACKENDS]),
    st.sampled_from([InVectors, InVectors, OnRows]),
    st.integers(1, 3),
    st.sampled_from(["snapshot", "full_snapshot", "native_snapshot"]),
)
steps = st.lists(
    st.one_of(writes, writes, sweeps, st.sampled_from(["snapshot", "fails", "completes later"]), moves), max_size=14
)


@settings(max_examples=examples(20), deadline=None)
@given(first=st.sampled_from([*BACKENDS]), steps=steps)
def test_any_writes_clears_snapshots_and_moves_leave_the_values_of_a_dictionary(first, steps):
    store, ids = MemoryFiles(), itertools.count(1)
    target = Target(store)
    model, life, late = {name: {} for name in STATES}, Life(BACKENDS[first], InVectors, 2), []
    restore = None
    try:
        for step in steps:
            if step in ("snapshot", "fails", "completes later"):
                number = next(ids)
                captured = life.snapshot("snapshot", number, target)
                if step == "completes later":  # what it captured is written after the batches that follow
                    late.append(captured)
                    continue
                stored = [each.write(target) for each in captured]
                if step == "snapshot":
                    late.clear()
                    for backend in life.backends:
                        backend.snapshot_completed(number)
                    restore = stored
            elif step[0] == "many":
                for part in range(step[1]):
                    keys = [(1_000 * part + n,) for n in range(100, 900)]
                    life.write("n", dict.fromkeys(keys, 1))
                    life.write("n", dict.fromkeys(keys))
            elif step[0] in STATES:
                name, entries = step
                life.write(name, entries)
                for key, value in entries.items():
                    model[name][key] = None if value is None else STATES[name][2](value)
            else:
                for captured in late:
                    [each.write(target) for each in captured]
                late.clear()
                backend, form, parallelism, how = step
                restore = [each.write(target) for each in life.snapshot(how, next(ids), target)]
                life.close()
                life = Life(BACKENDS[backend], form, parallelism, restore, store)
        for captured in late:
            [each.write(target) for each in captured]
        [each.write(target) for each in life.snapshot("snapshot", next(ids), target)]  # writes what is in memory
        expected = {n: {state_key(k): v for k, v in kept.items() if v is not None} for n, kept in model.items()}
        assert life.entries() == expected
    finally:
        life.close()


@pytest.mark.parametrize("checkpoints", [False, True])
def test_keys_that_have_no_state_any_more_take_no_memory(checkpoints):
    backend = HeapStateBackend(tracked=checkpoints)
    form = InVectors(backend, tracked=checkpoints)
    for first in range(0, 40_000, 500):
        keys = {(n,): 1 for n in range(first, first + 500)}
        form.write("n", keys)
        form.write("n", dict.fromkeys(keys))
        if checkpoints:
            captured = backend.snapshot(first + 1)
            captured.key_groups = EVERYTHING
            captured.write(Target(MemoryFiles()))
            backend.snapshot_completed(first + 1)
    assert len(form.keys.index) < 4_000
    assert list(backend.entries("n")) == []
    backend.close()


def test_a_value_that_a_function_of_rows_kept_against_its_type_is_named():
    rows = heap()
    form = OnRows(rows)
    rows.cell[0] = state_key((1,))
    form.states["n"].update(0.5)
    store = MemoryFiles()
    captured = rows.full_snapshot(1)
    captured.key_groups = EVERYTHING
    stored = captured.write(Target(store))
    vectors = heap()
    vectors.restore(OperatorRestore("op", (stored,), max_parallelism=GROUPS), store, key_group_range(GROUPS, 1, 0))
    with pytest.raises(StateError, match=r"state 'n' holds 0\.5"):
        InVectors(vectors)


@pytest.mark.parametrize("most_bytes", [1, 1 << 17])
def test_only_the_keys_in_use_are_in_memory_with_rocksdb(most_bytes, monkeypatch):
    monkeypatch.setattr(Shared, "in_slot", type(Shared.in_slot)())  # tables that other tests left take no part of it
    backend = rocksdb(settings=replace(SMALL, cache_bytes=most_bytes))
    form = InVectors(backend)
    begun_anew = 0
    for first in range(0, 8_000, 100):
        form.write("n", {(n,): n for n in range(first, first + 100)})
        begun_anew += len(form.keys.index) == 100
        assert form.keys.size_bytes < most_bytes + 64_000
    for first in range(0, 8_000, 100):
        numbers = form.keys.numbers([pa.array(range(first, first + 100), pa.int32())])
        assert form.tables["n"].read(numbers)[0].tolist() == list(range(first, first + 100))
    assert begun_anew == 80 if most_bytes == 1 else begun_anew < 20
    backend.close()
