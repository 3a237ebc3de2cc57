"""Options and URLs: PyFlink's builders, the drivers behind URLs, and passwords that are never shown."""

import pickle

import pytest

from ekorn.connectors.jdbc.database import parse
from ekorn.connectors.jdbc.databases import database_of
from ekorn.connectors.jdbc.postgresql import PostgreSql
from ekorn.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions
from ekorn.errors import ConfigurationError
from tests.connectors.jdbc.stores import options_of

SECRET = "canary-Pg7-secret"


def test_builders_are_pyflinks():
    options = (
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        .with_url("jdbc:postgresql://host:5433/orders")
        .with_driver_name("org.postgresql.Driver")
        .with_user_name("me")
        .with_password(SECRET)
        .build()
    )
    assert options.get_db_url() == "jdbc:postgresql://host:5433/orders"
    assert options.get_driver_name() == "org.postgresql.Driver"
    assert (options.get_user_name(), options.get_password()) == ("me", SECRET)
    execution = (
        JdbcExecutionOptions.builder().with_batch_interval_ms(10).with_batch_size(20).with_max_retries(5).build()
    )
    assert execution.get_batch_interval_ms() == 10
    assert (execution.get_batch_size(), execution.get_max_retries()) == (20, 5)


def test_the_defaults_are_flinks():
    defaults = JdbcExecutionOptions.defaults()
    found = defaults.get_batch_interval_ms(), defaults.get_batch_size(), defaults.get_max_retries()
    assert found == (0, 5000, 3)
    assert JdbcExecutionOptions.builder().build() == defaults


@pytest.mark.parametrize(
    ("url", "parameters"),
    [
        ("//host:5433/db", {"host": "host", "port": "5433", "dbname": "db"}),
        ("//host/db", {"host": "host", "port": "5432", "dbname": "db"}),
        ("//a:1,b:2/db", {"host": "a,b", "port": "1,2", "dbname": "db"}),
        ("//[::1]:9/db", {"host": "::1", "port": "9", "dbname": "db"}),
        ("db", {"host": "localhost", "port": "5432", "dbname": "db"}),
        (
            "//h/d?user=u&password=p&sslmode=require&ApplicationName=x",
            {
                "host": "h",
                "port": "5432",
                "dbname": "d",
                "user": "u",
                "password": "p",
                "sslmode": "require",
                "application_name": "x",
            },
        ),
        ("//h/d?currentSchema=a,%20b", {"host": "h", "port": "5432", "dbname": "d", "options": "-csearch_path=a,b"}),
        ("//h/d?ssl=true", {"host": "h", "port": "5432", "dbname": "d", "sslmode": "verify-full"}),
    ],
)
def test_urls_of_postgresql(url, parameters):
    database = database_of(options_of(f"jdbc:postgresql:{url}"))
    assert isinstance(database, PostgreSql)
    assert database.parameters == parameters


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("jdbc:mysql://h/d", "URLs start with jdbc:postgresql: and jdbc:sqlite:"),
        ("postgresql://h/d", "no driver supports"),
        ("jdbc:sqlite::memory:", "does not name a file"),
        ("jdbc:sqlite:/x.db?cache=shared", "take no parameters"),
        ("jdbc:postgresql://h/d?wrong=1", "'wrong'"),
        (f"jdbc:postgresql://me:{SECRET}@h/d", "with_user_name"),
        (f"jdbc:mysql://h/d?password={SECRET}", "no driver supports"),
        (f"jdbc:postgresql://h/d?password={SECRET}&wrong=1", "'wrong'"),
    ],
)
def test_a_url_that_nothing_serves_is_refused_without_its_password(url, reason):
    with pytest.raises(ConfigurationError, match=reason) as caught:
        database_of(options_of(url))
    assert SECRET not in str(caught.value)


def test_a_driver_of_another_database_is_refused():
    options = JdbcConnectionOptions("jdbc:sqlite:/x.db", driver_name="com.mysql.cj.jdbc.Driver")
    with pytest.raises(ConfigurationError, match="does not support"):
        database_of(options)


def test_no_repr_shows_a_password():
    options = options_of(f"jdbc:postgresql://h/d?password={SECRET}", "me", SECRET)
    assert SECRET not in repr(options)
    assert SECRET not in repr(database_of(options))
    assert SECRET not in f"{pickle.loads(pickle.dumps(options))!r}"


@pytest.mark.parametrize("call", ["with_batch_interval_ms", "with_max_retries"])
def test_numbers_below_zero_are_refused(call):
    with pytest.raises(ValueError, match="0 or more"):
        getattr(JdbcExecutionOptions.builder(), call)(-1)


@pytest.mark.parametrize(
    ("sql", "count", "spelled"),
    [
        ("INSERT INTO t VALUES (?, ?)", 2, "INSERT INTO t VALUES (%s, %s)"),
        ("SELECT '?' || ? -- ?", 1, "SELECT '?' || %s -- ?"),
        ('SELECT "a?" /* ? */ FROM t WHERE b = ?', 1, 'SELECT "a?" /* ? */ FROM t WHERE b = %s'),
        ("SELECT $x$ ? $x$, $$ ? $$, ?", 1, "SELECT $x$ ? $x$, $$ ? $$, %s"),
        ("SELECT a ?? 'k', ? % 2", 1, "SELECT a ? 'k', %s %% 2"),
        ("SELECT 'it''s ?', ?", 1, "SELECT 'it''s ?', %s"),
    ],
)
def test_placeholders_stand_outside_of_text_names_and_comments(sql, count, spelled):
    statement = parse(sql)
    assert statement.placeholder_count == count
    assert database_of(options_of("jdbc:postgresql:d")).spelled(statement) == spelled
