"""Databases behind `jdbc:` URLs: PostgreSQL and SQLite."""

from tamias.connectors.jdbc.exactly_once import JdbcExactlyOnceSink
from tamias.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from tamias.connectors.jdbc.sink import JdbcSink
from tamias.connectors.jdbc.source import JdbcSource, JdbcSourceBuilder

__all__ = [
    "JdbcConnectionOptions",
    "JdbcExactlyOnceSink",
    "JdbcExecutionOptions",
    "JdbcSink",
    "JdbcSource",
    "JdbcSourceBuilder",
]
