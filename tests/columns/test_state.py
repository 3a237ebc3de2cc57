"""The state of aggregates: the same on every backend, in both forms, in memory and on disk, after any snapshots."""

import datetime
import itertools
from collections import defaultdict
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.columns.batch_aggregates import AdaptedAggregate
from ekorn.columns.kernel_choice import chosen_kernel
from ekorn.columns.key_index import KeyIndex
from ekorn.columns.row_columns import RowColumns
from ekorn.datastream.columns import ApproxCountDistinct, Count, CountDistinct, Last, Max, Mean, Min, Quantile, Sum
from ekorn.functions.state.state_descriptors import ValueStateDescriptor
from ekorn.keygroups import key_group, key_group_range, state_key, subtask_of
from ekorn.state.column_table import ColumnTable, KeyValues
from ekorn.state.snapshots import OperatorRestore, StateInfo
from ekorn.storage.memory import MemoryFiles
from ekorn.table import DataTypes
from tests.columns.sum_of_squares import SumOfSquares
from tests.examples_by_profile import examples
from tests.state.backends import GROUPS, SMALL, cramped, heap, rocksdb
from tests.state.keyed_machine import Target

BACKENDS = {"heap": heap, "rocksdb": rocksdb, "cramped": cramped}
KEY = DataTypes.ROW([DataTypes.FIELD("k", DataTypes.STRING()), DataTypes.FIELD("n", DataTypes.INT())])
NAME = DataTypes.ROW([DataTypes.FIELD("name", DataTypes.STRING())])
DAY = datetime.date(2024, 1, 1)
SQUARES = AdaptedAggregate(
    "", SumOfSquares("v"), DataTypes.ROW([DataTypes.FIELD("v", DataTypes.BIGINT())]), DataTypes.BIGINT()
)
AGGREGATES = [
    (Sum("v"), pa.int64(), pa.int64()),
    (Count(), None, pa.int64()),
    (Mean("v"), pa.int64(), pa.float64()),
    (Max("d"), pa.date32(), pa.date32()),
    (Min("t"), pa.string(), pa.string()),  # kept as Python objects
    (Last("l"), pa.list_(pa.int64()), pa.list_(pa.int64())),  # rows keep it as a pickle
    (CountDistinct("t"), pa.string(), pa.int64()),
    (ApproxCountDistinct("d"), pa.date32(), pa.int64()),
    (Quantile("v", [0.1, 0.9]), pa.int64(), pa.list_(pa.float64())),
    (
        AdaptedAggregate(
            "", SumOfSquares("v"), DataTypes.ROW([DataTypes.FIELD("v", DataTypes.BIGINT())]), DataTypes.BIGINT()
        ),
        None,
        pa.int64(),
    ),
]


class OnColumns:
    """Aggregates in vectors."""

    def __init__(self, backend):
        kernels = [chosen_kernel(*each) for each in AGGREGATES]
        types = RowColumns(KEY).schema.types
        self.table = ColumnTable(
            StateInfo("_aggregates", "value"), KeyIndex(types), kernels, KeyValues(KEY), tracked=True
        )
        backend.adopt(self.table)

    def add(self, rows):
        keys = [pa.array([k for (k, _), _ in rows], pa.string()), pa.array([n for (_, n), _ in rows], pa.int32())]
        numbers = self.table.rows(keys)
        values = [None if value is None else int(value) for _, value in rows]
        for kernel, (aggregate, kind, _) in zip(self.table.kernels, AGGREGATES, strict=True):
            column = {"v": values, "d": map(day, values), "t": map(text, values), "l": map(alone, values)}.get(
                aggregate.column
            )
            if isinstance(aggregate, AdaptedAggregate):
                kernel.update(numbers, [pa.array(values, pa.int64())])
            else:
                kernel.update(numbers, None if kind is None else pa.array(column, kind))


class OnRows:
    """The same aggregates, row by row."""

    def __init__(self, backend):
        self.cell, self.state = backend.cell, backend.state(ValueStateDescriptor("_aggregates", None))

    def add(self, rows):
        for key, value in rows:
            self.cell[0] = state_key(key)
            self.state.update(with_value(self.state.value(), value))


def day(number):
    return None if number is None else DAY + datetime.timedelta(number)


def text(number):
    return None if number is None else f"text {number}"


def alone(number):
    return None if number is None else [number]


def with_value(entry, value):
    parts, first = [], 0
    for aggregate, _, _ in AGGREGATES:
        part = aggregate.create() if entry is None else entry[first : first + aggregate.width]
        first += aggregate.width
        if isinstance(aggregate, AdaptedAggregate):
            parts.append(aggregate.add(part, (value,)))
            continue
        given_value = {"v": value, "d": day(value), "t": text(value), "l": alone(value)}.get(aggregate.column)
        parts.append(aggregate.add(part, given_value) if value is not None or not aggregate.column else part)
    return sum(parts, ())


class Life:
    """The subtasks of one attempt, on one backend and in one form."""

    def __init__(self, make, form, parallelism, stored=None, store=None):
        self.ranges = [key_group_range(GROUPS, parallelism, index) for index in range(parallelism)]
        self.backends = [make(groups) for groups in self.ranges]
        for backend, groups in zip(self.backends, self.ranges, strict=True):
            if stored is not None:
                backend.restore(OperatorRestore("op", tuple(stored), max_parallelism=GROUPS), store, groups)
        self.forms = [form(backend) for backend in self.backends]

    def add(self, rows):
        mine = defaultdict(list)
        for key, value in rows:
            mine[subtask_of(key_group(key, GROUPS), GROUPS, len(self.ranges))].append((key, value))
        for index, part in mine.items():
            self.forms[index].add(part)

    def snapshot(self, how, checkpoint_id, target):
        parts = []
        for backend, groups in zip(self.backends, self.ranges, strict=True):
            captured = getattr(backend, how)(checkpoint_id)
            captured.key_groups = groups
            parts.append(captured)
        return [captured.write(target) for captured in parts]

    def entries(self):
        found = {}
        for backend in self.backends:
            declaration = backend.declaration("_aggregates")
            found |= {key: declaration.value.loaded(value) for key, value in backend.entries("_aggregates")}
        return found

    def close(self):
        for backend in self.backends:
            backend.close()


keys = st.tuples(st.none() | st.sampled_from(["a", "b", "", "ö" * 9]), st.none() | st.integers(-3, 3))
batches = st.lists(st.tuples(keys, st.none() | st.integers(-50, 50)), max_size=12)
steps = st.lists(
    st.one_of(
        batches,
        st.sampled_from(["snapshot", "snapshot", "fails"]),
        st.tuples(
            st.sampled_from([*BACKENDS]),
            st.sampled_from([OnColumns, OnColumns, OnRows]),
            st.integers(1, 3),
            st.sampled_from(["snapshot", "full_snapshot", "native_snapshot"]),
        ),
    ),
    max_size=12,
)


@settings(max_examples=examples(15), deadline=None)
@given(first=st.sampled_from([*BACKENDS]), steps=steps)
def test_any_batches_snapshots_rescalings_and_moves_leave_the_aggregates_of_all_rows(first, steps):
    store, ids = MemoryFiles(), itertools.count(1)
    target = Target(store)
    model, life = {}, Life(BACKENDS[first], OnColumns, 2)
    try:
        for step in steps:
            if isinstance(step, list):
                life.add(step)
                for key, value in step:
                    model[key] = with_value(model.get(key), value)
            elif isinstance(step, str):
                number = next(ids)
                life.snapshot("snapshot", number, target)
                if step == "snapshot":
                    for backend in life.backends:
                        backend.snapshot_completed(number)
            else:
                backend, form, parallelism, how = step
                stored = life.snapshot(how, next(ids), target)
                life.close()
                life = Life(BACKENDS[backend], form, parallelism, stored, store)
        life.snapshot("snapshot", next(ids), target)  # writes what is in memory
        assert life.entries() == {state_key(key): value for key, value in model.items()}
        for key, value in model.items():
            index = subtask_of(key_group(key, GROUPS), GROUPS, len(life.ranges))
            backend = life.backends[index]
            kept = backend.entry("_aggregates", state_key(key))
            assert backend.declaration("_aggregates").value.loaded(kept) == value
    finally:
        life.close()


@pytest.mark.parametrize("most_bytes", [1, 1 << 17])
def test_only_the_keys_in_use_are_in_memory_with_rocksdb(most_bytes):
    backend = rocksdb(settings=replace(SMALL, cache_bytes=most_bytes))
    form = OnColumns(backend)
    for first in range(0, 4_000, 100):
        form.add([((f"key {n}", 0), n) for n in range(first, first + 100)])
        assert len(form.table.index) * 50 < most_bytes + 100 * 400
    found = {}
    for rows in form.table.parts():
        names = form.table.index.columns(rows)[0].to_pylist()
        found |= dict(zip(names, form.table.kernels[0].results(rows).to_pylist(), strict=True))
    assert found == {f"key {n}": n for n in range(4_000)}
    backend.close()


def one_sum(backend):
    table = ColumnTable(
        StateInfo("_aggregates", "value"),
        KeyIndex(RowColumns(NAME).schema.types),
        [chosen_kernel(Sum("v"), pa.int64(), pa.int64())],
        KeyValues(NAME),
        tracked=True,
    )
    backend.adopt(table)
    return table


def add(table, numbers):
    rows = table.rows([pa.array([f"user_{number}" for number in numbers])])
    amounts = Random(len(rows))  # of any size: files of equal amounts are compressed to nothing
    table.kernels[0].update(rows, pa.array([amounts.getrandbits(40) for _ in numbers], pa.int64()))


def test_a_million_keys_with_a_sum_take_less_than_sixty_bytes_each():
    table = one_sum(heap())
    for first in range(0, 1_000_000, 100_000):
        add(table, range(first, first + 100_000))
    assert len(table.index) == 1_000_000
    assert table.size_bytes / len(table.index) < 60


@pytest.mark.parametrize("make", [heap, rocksdb])
def test_a_checkpoint_after_a_hundredth_of_the_keys_has_changed_writes_less_than_a_fiftieth(make):
    backend, written = make(), []
    table = one_sum(backend)
    for number, changed in enumerate([range(100_000), range(0, 100_000, 100), range(7, 100_000, 100)], 1):
        add(table, changed)
        target = Target(MemoryFiles())
        captured = backend.snapshot(number)
        captured.key_groups = key_group_range(GROUPS, 1, 0)
        captured.write(target)
        backend.snapshot_completed(number)
        written.append(target.bytes_written)
    assert 0 < max(written[1:]) < written[0] / 50
    backend.close()
