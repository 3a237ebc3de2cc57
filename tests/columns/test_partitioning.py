"""The subtask of each row of a batch is that of the same row in a stream of rows, for keys of every type."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.columns.distinct_first import DistinctFirst
from ekorn.columns.key_index import KeyIndex
from ekorn.columns.partitioning import KeyRoutes
from ekorn.columns.row_columns import RowColumns, row_type_of_arrow
from ekorn.keygroups import key_group
from tests.columns.key_kinds import KINDS
from tests.examples_by_profile import examples

GROUPS = 32_749
MODULUS = (1 << 61) - 1  # of Python's hash of numbers
EDGES = [sign * (times * MODULUS + near) for sign in (1, -1) for times in range(5) for near in (-2, -1, 0, 1, 2)]
KEYS = KINDS | {
    "edges of hashes": (pa.int64(), st.sampled_from([n for n in EDGES if -(2**63) <= n < 2**63])),
    "texts of any length": (pa.string(), st.integers(0, 40).map("äbc€".__mul__) | st.text(max_size=3)),
}
del KEYS["unsigned"]  # no stream has such a column


def groups_by_row(schema, columns):
    rows = RowColumns(row_type_of_arrow(schema)).values(columns)
    return [key_group(row, GROUPS) for row in rows]


@pytest.mark.parametrize("kind", KEYS)
def test_key_groups_of_a_column_are_those_of_its_keys(kind):
    arrow_type, values = KEYS[kind]
    schema = pa.schema([("key", arrow_type)])

    @settings(max_examples=examples(40), deadline=None)
    @given(st.lists(st.lists(values, max_size=30), max_size=3))
    def check(batches):
        routes = KeyRoutes(schema, max_parallelism=GROUPS, parallelism=GROUPS)
        for batch in batches:
            columns = [pa.array(batch, arrow_type)]
            assert routes.targets(columns).tolist() == groups_by_row(schema, columns)

    check()


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.tuples(*(KINDS[kind][1] for kind in ("text", "long", "date", "bool"))), max_size=20))
def test_key_groups_of_several_columns_are_those_of_their_keys(rows):
    schema = pa.schema([(kind, KINDS[kind][0]) for kind in ("text", "long", "date", "bool")])
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)]
    routes = KeyRoutes(schema, max_parallelism=GROUPS, parallelism=GROUPS)
    assert routes.targets(columns).tolist() == groups_by_row(schema, columns)


@pytest.mark.parametrize("kind", ["text", "long", "date", "timestamp", "double"])
@pytest.mark.parametrize("distinct", [7, 5_000])
def test_large_batches_have_the_keys_and_the_groups_of_small_ones(kind, distinct):
    arrow_type, schema = KINDS[kind][0], pa.schema([("key", KINDS[kind][0])])
    numbers = pa.array(np.random.default_rng(distinct).integers(0, distinct, 6_000))
    numbers = pa.concat_arrays([numbers, pa.array([None, 0, None], pa.int64())])
    values = numbers.cast(pa.int32()).cast(arrow_type) if kind == "date" else numbers.cast(arrow_type)
    index, routes = KeyIndex([arrow_type]), KeyRoutes(schema, max_parallelism=GROUPS, parallelism=GROUPS)
    groups = groups_by_row(schema, [values])
    for _ in range(5):  # the way changes after a batch
        rows = index.rows([values])
        assert index.columns(rows)[0].equals(values)
        assert index.find([values]).tolist() == rows.tolist()
        assert routes.targets([values]).tolist() == groups
    assert len(index) == len(values.unique())


def test_a_column_is_encoded_again_once_it_has_few_values():
    many, few = pa.array(range(2_000)), pa.array([1, 2] * 1_000)
    encoder = DistinctFirst()
    assert [at for at in range(24) if encoder.of(many) is not None] == [0, 2, 5, 10, 19]
    while encoder.of(few) is None:
        pass
    assert all(encoder.of(few) is not None for _ in range(20))
