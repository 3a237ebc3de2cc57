"""`COPY` from columns into PostgreSQL: where it stores what the statement stores, and the statement everywhere else."""

import datetime

import pytest

from ekorn.common import Instant, Row
from ekorn.datastream.connectors.jdbc import JdbcSink
from ekorn.errors import DatabaseError
from ekorn.table import DataTypes
from ekorn.types.data_type_info import row_type_info
from tests.connectors.jdbc.stores import options_of
from tests.connectors.jdbc.written_columns import (
    COLUMNS,
    INSERT,
    MANY,
    PAIR,
    commands,
    fill,
    names,
    pairs,
)
from tests.servers.postgres import PASSWORD, USER

PLAIN = "CREATE TABLE names (id INT, name TEXT)"
TRIGGER = """
CREATE FUNCTION count_them() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN NEW.name := NEW.name || (SELECT count(*) FROM names); RETURN NEW; END $$;
CREATE TRIGGER counts BEFORE INSERT ON names FOR EACH ROW EXECUTE FUNCTION count_them()
"""
BY_STATEMENT = {
    "trigger": (f"{PLAIN}; {TRIGGER}", INSERT),
    "rule": (f"{PLAIN}; CREATE RULE r AS ON INSERT TO names WHERE NEW.id = 5 DO INSTEAD NOTHING", INSERT),
    "key-into-itself": (
        "CREATE TABLE names (id INT PRIMARY KEY, name TEXT, before INT DEFAULT 0 REFERENCES names (id)); "
        "INSERT INTO names VALUES (0, 'n0', 0)",
        "INSERT INTO names (id, name) VALUES (?, ?)",
    ),
    "partitions": (
        "CREATE TABLE names (id INT, name TEXT) PARTITION BY RANGE (id); "
        "CREATE TABLE low PARTITION OF names FOR VALUES FROM (0) TO (1000)",
        INSERT,
    ),
    "view": ("CREATE TABLE t (id INT, name TEXT); CREATE VIEW names AS SELECT id, name FROM t", INSERT),
    "real-column": ("CREATE TABLE names (id REAL, name TEXT)", INSERT),
    "domain": ("CREATE DOMAIN small AS INT CHECK (VALUE < 1000); CREATE TABLE names (id small, name TEXT)", INSERT),
    "upsert": (
        "CREATE TABLE names (id INT PRIMARY KEY, name TEXT)",
        "INSERT INTO names VALUES (?, ?) ON CONFLICT (id) DO NOTHING",
    ),
    "expression": (PLAIN, "INSERT INTO names VALUES (?, upper(?))"),
    "constant": (PLAIN, "INSERT INTO names (id, name) VALUES (? + 0, ?)"),
    "comment": (PLAIN, "INSERT INTO names VALUES (?, ?) -- all of them"),
    "query": (PLAIN, "INSERT INTO names SELECT ?, ?"),
}


def test_the_statement_is_run_where_copy_might_store_other_values(postgresql):
    for case, (prepare, sql) in BY_STATEMENT.items():
        postgresql.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        postgresql.run(prepare)
        fill(JdbcSink.sink(sql, PAIR, postgresql.options), pairs(MANY, first=1))
        of_rows = names(postgresql)
        postgresql.run("DELETE FROM names WHERE id > 0")
        fill(JdbcSink.sink(sql, PAIR, postgresql.options), pairs(MANY, first=1), COLUMNS)
        assert names(postgresql) == of_rows and len(of_rows) >= MANY - 1, case
        assert commands(postgresql, "t" if case == "view" else "names") >= MANY - 1, case


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ("id INT GENERATED ALWAYS AS IDENTITY, name TEXT", "GENERATED ALWAYS|DEFAULT"),
        ("name TEXT, id INT GENERATED ALWAYS AS (1) STORED", "generated column|DEFAULT"),
        ("id INT", "column"),
    ],
)
def test_what_the_statement_may_not_do_copy_does_not_do(postgresql, columns, error):
    postgresql.run(f"CREATE TABLE names ({columns})")
    with pytest.raises(DatabaseError, match=error):
        fill(JdbcSink.sink(INSERT, PAIR, postgresql.options), pairs(MANY), COLUMNS)
    assert postgresql.run("SELECT * FROM names") == []


@pytest.mark.parametrize(
    ("table", "columns", "sql"),
    [
        (
            '"Odd ""Names"',
            'id INT, more INT DEFAULT 7, "The Name" TEXT',
            'insert into "Odd ""Names" (ID, "The Name") values (?,?);',
        ),
        ("odd.names", 'id INT, "The Name" TEXT, more INT DEFAULT 7', "INSERT INTO odd . names VALUES\n  (?, ?)"),
        ("odd.names", 'more INT DEFAULT 7, "The Name" TEXT, id INT', 'INSERT INTO odd.names(id,"The Name")VALUES(?,?)'),
    ],
)
def test_tables_and_columns_are_found_as_the_statement_names_them(postgresql, table, columns, sql):
    postgresql.run("CREATE SCHEMA odd")
    postgresql.run(f"CREATE TABLE {table} ({columns})")
    fill(JdbcSink.sink(sql, PAIR, postgresql.options), pairs(MANY), COLUMNS)
    found = postgresql.run(f'SELECT id, "The Name", more FROM {table} ORDER BY id')
    assert found == [(n, f"n{n}", 7) for n in range(MANY)]
    assert commands(postgresql, table) == 1


def test_few_rows_are_written_one_by_one(postgresql):
    postgresql.run(PLAIN)
    fill(JdbcSink.sink(INSERT, PAIR, postgresql.options), pairs(50), COLUMNS)
    assert len(names(postgresql)) == commands(postgresql) == 50


@pytest.fixture
def clerk(postgresql):
    """Return the options of a user who may insert into `names`, and not read it."""
    user = f"clerk_{postgresql.name}"
    postgresql.run(PLAIN)
    postgresql.run(f"CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'")
    postgresql.run(f"GRANT INSERT ON names TO {user}")
    yield options_of(postgresql.options.get_db_url(), user, PASSWORD)
    postgresql.run(f"DROP OWNED BY {user}")
    postgresql.run(f"DROP ROLE {user}")


def test_a_user_who_may_only_insert_copies(postgresql, clerk):
    fill(JdbcSink.sink(INSERT, PAIR, clerk), pairs(MANY), COLUMNS)
    assert len(names(postgresql)) == MANY and commands(postgresql) == 1


def test_a_policy_of_the_table_decides_about_every_row(postgresql, clerk):
    postgresql.run("ALTER TABLE names ENABLE ROW LEVEL SECURITY")
    postgresql.run("CREATE POLICY small ON names FOR INSERT WITH CHECK (id < 1000)")
    fill(JdbcSink.sink(INSERT, PAIR, clerk), pairs(MANY), COLUMNS)
    assert len(names(postgresql)) == commands(postgresql) == MANY
    with pytest.raises(DatabaseError, match="row-level security policy"):
        fill(JdbcSink.sink(INSERT, PAIR, clerk), pairs(MANY, first=900), COLUMNS)
    assert len(names(postgresql)) == MANY


MOMENT = datetime.datetime(2024, 2, 29, 23, 30, 0, 250_000)
CASTS = {
    "instant": (DataTypes.TIMESTAMP_LTZ(6), "TIMESTAMP", Instant.of_epoch_milli(1_500)),
    "wall_clock": (DataTypes.TIMESTAMP(3), "TIMESTAMPTZ", MOMENT),
    "day_of": (DataTypes.TIMESTAMP(3), "DATE", MOMENT),
    "rounded": (DataTypes.DOUBLE(), "INT", 2.5),
    "narrowed": (DataTypes.DOUBLE(), "REAL", 0.1),
    "exact": (DataTypes.DOUBLE(), "NUMERIC", 0.1),
    "spelled": (DataTypes.BOOLEAN(), "TEXT", True),
    "flags": (DataTypes.ARRAY(DataTypes.BOOLEAN()), "TEXT[]", [True, None]),
}


def test_a_value_of_another_type_is_converted_as_the_statement_converts_it(postgresql):
    url = f"{postgresql.options.get_db_url()}?options=-cTimeZone%3DAsia/Tokyo"
    elsewhere = options_of(url, USER, PASSWORD)
    for name, (data_type, sql, value) in CASTS.items():
        postgresql.run(f"CREATE TABLE {name} (value {sql})")
        row_type = DataTypes.ROW([DataTypes.FIELD("value", data_type)])
        for form in (None, row_type):
            sink = JdbcSink.sink(f"INSERT INTO {name} VALUES (?)", row_type_info(row_type), elsewhere)
            fill(sink, [Row(value=value)] * MANY, form)
        assert postgresql.run(f"SELECT count(DISTINCT value) FROM {name}") == [(1,)], name
        assert commands(postgresql, name) == 2 * MANY, name
