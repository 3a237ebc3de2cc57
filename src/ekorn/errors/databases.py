"""Errors of databases."""

from __future__ import annotations

from ekorn.errors.base import EkornError, preview, with_fields


@with_fields
class DatabaseError(EkornError):
    """A database refused a statement, or could not be reached.

    Args:
        database: The URL of the database, without user and password.
        activity: The work that failed, such as ``write a batch of 12 rows``.
        statement: The statement.
        reason: The words of the database's driver.
    """

    database: str
    activity: str
    statement: str | None
    reason: str

    def __str__(self) -> str:
        database, activity, statement, reason = self.args
        said = "" if statement is None else f" with {preview(statement)}"
        return f"cannot {activity} at {database}{said}: {reason}"


class LedgerRowExpired(DatabaseError):
    """A restored transaction is so old that the ledger no longer shows whether it was committed."""

    retryable = False
