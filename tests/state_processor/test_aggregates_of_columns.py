"""The aggregates of a job on columns are read from its savepoint as data, changed, and restored on columns."""

import pytest

from ekorn.common import Row, Types
from ekorn.datastream.columns import Count, CountDistinct, Sum
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.state_processor import (
    KeyedStateBootstrapFunction,
    KeyedStateReaderFunction,
    OperatorTransformation,
    SavepointReader,
    SavepointWriter,
)
from ekorn.testing import collect_locally, on_local_engine
from tests.state_processor.programs import KEYS, numbers, restored, savepoint_of
from tests.state_processor.savepoint_functions import env

NUMBER = Types.ROW_NAMED(["key", "number"], [Types.STRING(), Types.LONG()])
ACCUMULATORS = ValueStateDescriptor("_aggregates")


def aggregates(env, given=range(120), form="columns"):
    rows = numbers(env, given).map(lambda n: Row(key=f"k{n % KEYS}", number=n), NUMBER)
    keyed = (rows.to_columns(max_rows=4) if form == "columns" else rows).key_by("key")
    return keyed.aggregate(total=Sum("number"), count=Count(), distinct=CountDistinct("number")).uid("totals")


class ReadAccumulators(KeyedStateReaderFunction):
    def open(self, runtime_context):
        self.state = runtime_context.get_state(ACCUMULATORS)

    def read_key(self, key, ctx):
        yield key, self.state.value()


class AddThousand(KeyedStateBootstrapFunction):
    """Writes the accumulators of a key with a larger sum."""

    def open(self, runtime_context):
        self.state = runtime_context.get_state(ACCUMULATORS)

    def process_element(self, value, ctx):
        total, *others = value[1]
        self.state.update((total + 1000, *others))


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize(("backend", "native"), [("hashmap", False), ("rocksdb", True)])
def test_accumulators_are_read_changed_and_restored(tmp_path, backend, native, form):
    path = savepoint_of(lambda env: aggregates(env, form=form), tmp_path, backend=backend, native=native)
    past = SavepointReader.read(env(), path).read_keyed_state("totals", ReadAccumulators())
    found = dict(collect_locally(past))
    assert sorted(found) == [(f"k{n}",) for n in range(KEYS)]
    for (name,), (total, count, *_) in found.items():
        mine = [n for n in range(120) if f"k{n % KEYS}" == name][:count]
        assert total == sum(mine)

    writing = env()
    records = SavepointReader.read(writing, path).read_keyed_state("totals", ReadAccumulators())
    changed = OperatorTransformation.bootstrap_with(records).key_by(lambda each: each[0]).transform(AddThousand())
    writer = SavepointWriter.from_existing_savepoint(writing, path).remove_operator("totals")
    new = str(tmp_path / "new")
    with on_local_engine():
        writer.with_operator("totals", changed).write(new)
    other = "rocksdb" if backend == "hashmap" else "hashmap"
    totals = {}
    for row in restored(aggregates, new, tmp_path, backend=other, parallelism=3):
        totals[row["key"]] = max(totals.get(row["key"], 0), row["total"])
    assert totals == {f"k{n}": 1000 + sum(range(n, 120, KEYS)) for n in range(KEYS)}
