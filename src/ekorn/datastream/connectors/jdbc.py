"""Databases behind `jdbc:` URLs: PostgreSQL and SQLite."""

from ekorn.connectors.jdbc.exactly_once import JdbcExactlyOnceSink
from ekorn.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from ekorn.connectors.jdbc.sink import JdbcSink
from ekorn.connectors.jdbc.source import JdbcSource, JdbcSourceBuilder

__all__ = [
    "JdbcConnectionOptions",
    "JdbcExactlyOnceSink",
    "JdbcExecutionOptions",
    "JdbcSink",
    "JdbcSource",
    "JdbcSourceBuilder",
]
