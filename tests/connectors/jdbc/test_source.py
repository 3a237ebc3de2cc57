"""`JdbcSource`: the contract of all sources, types of columns, ties, and rows that are committed out of order."""

import datetime
from decimal import Decimal

import pytest

from ekorn.clock import ManualClock
from ekorn.common import Configuration, Types, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.jdbc import JdbcSource
from ekorn.errors import DatabaseError, JobExecutionError
from ekorn.table import DataTypes
from ekorn.testing import collect_locally
from ekorn.testing.kits import FindsNewInput, RefusesBadInput, SourceCase, SourceJob
from tests.connectors.jdbc.stores import sqlite_store


def builder(store, sql="SELECT * FROM orders"):
    found = JdbcSource.builder().set_db_url(store.options.get_db_url()).set_sql(sql)
    if store.is_postgresql:
        found.set_username(store.options.get_user_name()).set_password(store.options.get_password())
    return found


def plain(row):
    return tuple(row)


class OrdersCase(SourceCase):
    """Orders whose ids have gaps, and whose groups have ties and nulls."""

    def __init__(self, store, column):
        self.store, self.column = store, column
        store.run("CREATE TABLE orders (id INT PRIMARY KEY, part INT, item VARCHAR(20))")
        self.rows = [(n * n, None if n % 5 == 0 else n % 4, f"item {n}") for n in range(23)]
        self.insert(self.rows)

    def insert(self, rows):
        values = ", ".join(["(?, ?, ?)"] * len(rows))
        self.store.run(f"INSERT INTO orders VALUES {values}", *[value for row in rows for value in row])

    @property
    def records(self):
        return self.rows

    def bounded(self):
        if self.column is None:
            return builder(self.store).build()
        return builder(self.store).set_partition_column(self.column, 3).set_result_set_fetch_size(4).build()

    def unbounded(self):
        return builder(self.store).set_growing_column("id", poll_interval=1).build()

    def add_input(self):
        added = [(n * n, 1, f"item {n}") for n in range(23, 30)]
        self.insert(added)
        return added

    def spoil(self):
        self.store.run("DROP TABLE orders")
        return DatabaseError, "cannot ask for the columns at jdbc:.*orders"


class TestOrdersInSqlite(FindsNewInput, RefusesBadInput):
    comparable = staticmethod(tuple)
    step = 5

    @pytest.fixture(params=["id", "part", None], ids=["by id", "by a column with ties and nulls", "whole"])
    def case(self, tmp_path, request):
        return OrdersCase(sqlite_store(tmp_path), request.param)


class TestOrdersInPostgresql(FindsNewInput, RefusesBadInput):
    comparable = staticmethod(tuple)
    step = 5

    @pytest.fixture
    def case(self, postgresql):
        return OrdersCase(postgresql, "part")


def test_ties_keep_their_order_whatever_is_inserted_elsewhere(store):
    case = OrdersCase(store, "part")
    source = case.bounded()
    job = SourceJob(source, 1)
    seen = [plain(row) for _ in range(3) for row in job.read(0, 2)]
    saved = job.snapshot()
    job.close()
    case.insert([(-1, -5, "new"), (10_000, 99, "new")])
    seen += [plain(row) for row in SourceJob(source, 2, saved).read_all(3)]
    assert sorted((row for row in seen if row[2] != "new"), key=repr) == sorted(case.rows, key=repr)


def test_rows_are_typed_by_their_columns(postgresql):
    postgresql.run(
        "CREATE TABLE t (a SMALLINT, b INT, c BIGINT, d REAL, e DOUBLE PRECISION, f NUMERIC(30, 10), g TEXT, "
        "h VARCHAR(5), i BYTEA, j BOOLEAN, k DATE, l TIMESTAMP, m JSON, n INT[])"
    )
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, 678901)
    postgresql.run(
        "INSERT INTO t VALUES (1, 2, 3, 0.5, 0.1, 1.5, 'g', 'h', '\\x01'::bytea, true, '2024-02-29', "
        "'2024-01-02 03:04:05.678901', '{\"x\": 1}', '{1,2}')"
    )
    postgresql.run("INSERT INTO t DEFAULT VALUES")
    source = builder(postgresql, "SELECT * FROM t;").build()
    short = [Types.SHORT(), Types.INT(), Types.LONG(), Types.FLOAT(), Types.DOUBLE(), Types.BIG_DEC()]
    rest = [Types.STRING(), Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.BOOLEAN(), Types.SQL_DATE()]
    types = [*short, *rest, *[Types.PICKLED_BYTE_ARRAY()] * 3]
    assert source.get_produced_type() == Types.ROW_NAMED(list("abcdefghijklmn"), types)
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "t")
    rows = sorted(collect_locally(stream.map(lambda row: row.as_dict())), key=lambda row: row["a"] is None)
    assert list(rows[0].values()) == [
        *(1, 2, 3, 0.5, 0.1, Decimal("1.5"), "g", "h", b"\x01", True, datetime.date(2024, 2, 29), moment),
        *({"x": 1}, [1, 2]),
    ]
    assert set(rows[1].values()) == {None}


def test_sqlite_declares_types_where_it_knows_them(tmp_path):
    store = sqlite_store(tmp_path)
    store.run("CREATE TABLE t (a INTEGER, b VARCHAR(5), c REAL, d BLOB, e)")
    source = builder(store, "SELECT a, b, c, d, e, a + 1 AS f FROM t").build()
    known = [Types.LONG(), Types.STRING(), Types.DOUBLE(), Types.PRIMITIVE_ARRAY(Types.BYTE())]
    expected = Types.ROW_NAMED(list("abcdef"), [*known, *[Types.PICKLED_BYTE_ARRAY()] * 2])
    assert source.get_produced_type() == expected


def test_an_empty_table_is_read_to_its_end(store):
    store.run("CREATE TABLE orders (id INT)")
    assert SourceJob(builder(store).set_partition_column("id", 3).build(), 2).read_all() == []


def test_a_query_with_percent_signs_and_text_with_question_marks(store):
    store.run("CREATE TABLE orders (id INT, name VARCHAR(9))")
    store.run("INSERT INTO orders VALUES (1, 'a')")
    source = builder(store, "SELECT id % 2 AS odd, 'why?' AS q FROM orders WHERE name LIKE '%a'").build()
    assert [plain(row) for row in SourceJob(source, 1).read_all()] == [(1, "why?")]


def test_a_row_that_is_committed_late_is_not_missed(postgresql):
    postgresql.run("CREATE TABLE orders (id SERIAL PRIMARY KEY, item TEXT)")
    clock = ManualClock()
    source = builder(postgresql).set_growing_column("id", poll_interval=1000).set_clock(clock).build()
    (split,) = source.discover_splits(1)
    reader = source.create_reader(split, None)

    def polled():
        clock.advance(1000)
        return [plain(row) for row in reader.read(100).values]

    assert postgresql.server is not None
    with postgresql.server.connect(postgresql.name) as slow:
        slow.autocommit = False
        slow.execute("INSERT INTO orders (item) VALUES ('slow')")
        postgresql.run("INSERT INTO orders (item) VALUES ('fast')")
        assert polled() == [], "row 1 is still to come"
        assert polled() == []
        slow.commit()
    assert polled() == [(1, "slow"), (2, "fast")]
    reader.close()


def test_a_growing_column_starts_where_it_is_told_and_keeps_its_place_within_a_run(store):
    store.run("CREATE TABLE orders (id INT, item VARCHAR(9))")
    for number in range(10):
        store.run("INSERT INTO orders VALUES (?, ?)", number // 2, f"n{number}")
    source = builder(store).set_growing_column("id", start_after=0, poll_interval=1).build()
    (split,) = source.discover_splits(1)
    reader = source.create_reader(split, None)
    seen = [plain(row) for row in reader.read(3).values]
    position = reader.position()
    reader.close()
    again = source.create_reader(split, position)
    seen += [plain(row) for _ in range(3) for row in again.read(100).values]
    again.close()
    assert seen == [(number // 2, f"n{number}") for number in range(2, 10)]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda b: b.set_sql("SELECT id FROM orders WHERE id = ?"), "without placeholders"),
        (lambda b: b.set_partition_column("nothing", 2), "no column 'nothing'; its columns are id, item"),
        (lambda b: b.set_partition_column("item", 2), "whole numbers"),
        (lambda b: b.set_partition_column("id", 2).set_growing_column("id"), "not both"),
    ],
)
def test_a_mistake_is_named_where_the_source_is_built(store, make, reason):
    store.run("CREATE TABLE orders (id INT, item VARCHAR(9))")
    with pytest.raises(ValueError, match=reason):
        make(builder(store)).build()


class ColumnsCase(OrdersCase):
    """The same rows as columns."""

    def bounded(self):
        reader = builder(self.store).set_result_set_fetch_size(4).as_columns()
        return (reader if self.column is None else reader.set_partition_column(self.column, 3)).build()


@pytest.mark.parametrize("column", [None, "id", "part"])
def test_ranges_are_read_as_columns_from_the_positions_of_rows(store, column):
    case = ColumnsCase(store, column)
    by_rows, by_columns = OrdersCase.bounded(case), case.bounded()
    names = by_columns.get_produced_type().schema.names
    assert names == ["id", "part", "item"]
    found = []
    for split in by_rows.discover_splits(2):
        first = by_rows.create_reader(split, None)
        found += map(tuple, first.read(2).values)
        second = by_columns.create_reader(split, first.position())
        while not second.finished:
            for batch in second.read(3).values:
                found += zip(*(batch.data.column(name).to_pylist() for name in names), strict=True)
        assert by_rows.create_reader(split, second.position()).read(9).values == []
        first.close()
    assert sorted(found) == sorted(case.rows)


def test_a_program_reads_a_query_as_columns_and_names_a_row_that_does_not_fit(store):
    case = OrdersCase(store, None)
    columns = DataTypes.ROW(
        [
            DataTypes.FIELD("id", DataTypes.TINYINT()),
            DataTypes.FIELD("part", DataTypes.INT()),
            DataTypes.FIELD("item", DataTypes.STRING()),
        ]
    )

    def orders():
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
        source = builder(store).as_columns(columns).build()
        return env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")

    assert orders().row_type == columns
    with pytest.raises(JobExecutionError, match=r"144.*does not fit the declared type ROW<id TINYINT"):
        collect_locally(orders())
    found = collect_locally(orders().on_record_error("skip"))
    assert sorted(row.id for row in found) == [row[0] for row in case.rows if row[0] < 128]


def test_columns_whose_types_are_not_known_must_be_declared(store):
    OrdersCase(store, None)
    query = "SELECT id, CAST(id AS NUMERIC) / 3 AS share FROM orders"
    with pytest.raises(ValueError, match="the type of column 'share' has no column of Arrow by itself"):
        builder(store, query).as_columns().build()
    wrong = DataTypes.ROW([DataTypes.FIELD("share", DataTypes.DOUBLE())])
    with pytest.raises(ValueError, match="the columns of the query are id, share, in this order"):
        builder(store, query).as_columns(wrong).build()
