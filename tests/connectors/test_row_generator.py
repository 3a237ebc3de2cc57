"""`RowGenerator`: rows by a schema, the same for the same number."""

import datetime
from collections import Counter

import pytest

from ekorn.common import Configuration, Row, Types, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, Fields, RowGenerator
from ekorn.testing import collect_locally
from ekorn.testing.kits import SourceCase, SourceKit

NEW_YEAR = datetime.datetime(2024, 1, 1)


def orders(seed=1):
    return RowGenerator(
        {
            "id": Fields.sequence(100, 10),
            "at": Fields.time_sequence(NEW_YEAR, datetime.timedelta(seconds=1)),
            "item": Fields.choice(["tea", "nuts", "salt"]),
            "count": Fields.random_int(1, 6),
            "price": Fields.random_double(5, 10),
            "code": Fields.random_string(30).with_null_rate(0.25),
            "paid": Fields.random_boolean(),
            "square": Fields.of(lambda number: number * number, Types.LONG()),
        },
        seed=seed,
    )


class OrdersCase(SourceCase):
    records = [orders().map(number) for number in range(40)]

    def bounded(self):
        return DataGeneratorSource(orders(), 40)


class TestOrders(SourceKit):
    @pytest.fixture
    def case(self):
        return OrdersCase()


def test_fields_follow_their_rules():
    rows = [orders().map(number) for number in range(2000)]
    assert [row.id for row in rows[:3]] == [100, 110, 120]
    assert rows[61].at == datetime.datetime(2024, 1, 1, 0, 1, 1)
    assert rows[7].square == 49
    for counts, size in ((Counter(row.item for row in rows), 3), (Counter(row["count"] for row in rows), 6)):
        assert len(counts) == size
        assert min(counts.values()) > 2000 / size * 0.8
    assert set(Counter(row["count"] for row in rows)) == {1, 2, 3, 4, 5, 6}
    assert all(5 <= row.price < 10 for row in rows)
    assert 700 < sum(row.paid for row in rows) < 1300
    codes = [row.code for row in rows if row.code is not None]
    assert 1400 < len(codes) < 1600
    assert len(set(codes)) == len(codes)
    assert {len(code) for code in codes} == {30}
    assert len(set("".join(code[-1] for code in codes))) == 36, "the last letter is as random as the first"


def test_a_seed_makes_other_rows():
    assert orders(1).map(5) == orders(1).map(5)
    assert orders(1).map(5) != orders(2).map(5)


def test_a_stream_has_the_type_of_the_fields():
    generator = RowGenerator({"id": Fields.sequence(), "item": Fields.choice(["tea"])})
    source = DataGeneratorSource(generator, 2)
    assert source.get_produced_type() == Types.ROW_NAMED(["id", "item"], [Types.LONG(), Types.STRING()])
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(1)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")
    assert collect_locally(stream) == [Row(id=0, item="tea"), Row(id=1, item="tea")]


@pytest.mark.parametrize(
    "make",
    [
        lambda: RowGenerator({}),
        lambda: RowGenerator({"id": 5}),  # type: ignore[dict-item]
        lambda: Fields.random_int(5, 1),
        lambda: Fields.random_string(-1),
        lambda: Fields.random_string(3, ""),
        lambda: Fields.choice([]),
        lambda: Fields.sequence().with_null_rate(2),
    ],
)
def test_wrong_rules_are_refused_at_the_call(make):
    with pytest.raises((ValueError, TypeError), match=r"takes a|takes two|at least one"):
        make()
