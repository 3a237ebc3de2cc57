"""Transactions that are tried again when the database is away."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

from ekorn.clock import Clock
from ekorn.connectors.jdbc.database import Database, reason_of
from ekorn.errors import DatabaseError

log = logging.getLogger(__name__)

Work = Callable[[Any], None]
"""Runs statements on a DB-API cursor."""


class Transactions:
    """One connection to a database, opened when it is first needed and again after it was lost."""

    def __init__(self, database: Database, *, max_retries: int, clock: Clock) -> None:
        self._database = database
        self._max_retries = max_retries
        self._clock = clock
        self._connection: Any = None

    def run(self, activity: str, statement: str | None, work: Work) -> None:
        """Run statements in one transaction, and commit it.

        If the database is away, everything is run again in a new transaction, up to the number of retries. A commit
        whose answer was lost may then be made twice, unless the statements notice it.

        Raises:
            DatabaseError: The database refused the statements, or stayed away.
        """
        retries = 0
        while True:
            try:
                self._attempt(work)
                return
            except self._database.errors() as error:
                self._discard()
                if retries >= self._max_retries or not self._database.may_pass(error):
                    # The driver's error is not chained: its traceback contains calls whose arguments hold the password.
                    raise DatabaseError(self._database.shown, activity, statement, reason_of(error)) from None
                log.warning("cannot %s at %s, trying again: %s", activity, self._database.shown, reason_of(error))
            # Flink: the first retry comes at once, the next ones after 1, 2, 3, ... seconds.
            self._clock.sleep(float(retries))
            retries += 1

    def _attempt(self, work: Work) -> None:
        if self._connection is None:
            self._connection = self._database.connect()
        cursor = self._connection.cursor()
        try:
            work(cursor)
            self._connection.commit()
            cursor.close()
        except BaseException:
            self._discard(cursor)
            raise

    def _discard(self, cursor: Any = None) -> None:
        """Close the connection, and with it the transaction."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        # The order matters: SQLite keeps the lock of a closed connection while one of its cursors is open. A lost
        # connection refuses each of these steps.
        for step in (*([cursor.close] if cursor is not None else ()), connection.rollback, connection.close):
            with contextlib.suppress(*self._database.errors()):
                step()

    def close(self) -> None:
        """Close the connection; a transaction that is open is rolled back."""
        self._discard()
