"""Fixtures of the tests of JDBC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connectors.jdbc.stores import Store, postgresql_store, sqlite_store
from tests.servers.postgres import PostgresServer, postgres_database, postgres_server, postgres_url

__all__ = ["postgres_database", "postgres_server", "postgres_url"]


@pytest.fixture
def postgresql(postgres_server: PostgresServer, postgres_database: str) -> Store:
    """Return an empty database of the session's server."""
    return postgresql_store(postgres_server, postgres_database)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.heavy)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Run a test on each database."""
    if request.param == "sqlite":
        yield sqlite_store(tmp_path)
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.database() as name:
        yield postgresql_store(server, name)
