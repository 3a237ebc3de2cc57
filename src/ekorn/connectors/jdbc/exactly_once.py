"""`JdbcSink.exactly_once_sink`: rows wait in the checkpoint, and are written together with a row of a ledger.

A transaction of this sink is its rows and an id. Committing it is one transaction of the database: insert the id into
the ledger; if it is there already, stop; otherwise write the rows. The database makes the two appear together, so a
second commit, by whichever process, at whichever parallelism, finds the id and writes nothing. XA is not needed, and an
attempt that failed leaves nothing in the database.
"""

from __future__ import annotations

import pickle
import uuid
from typing import Any, TypedDict

from ekorn.clock import Clock, SystemClock
from ekorn.connectors.jdbc.column_form import ColumnForm, RowStatement
from ekorn.connectors.jdbc.database import LEDGER, RowValues, Values, parse
from ekorn.connectors.jdbc.databases import database_of
from ekorn.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from ekorn.connectors.jdbc.repeated_transactions import Transactions
from ekorn.errors import LedgerRowExpired
from ekorn.faults import point
from ekorn.functions.runtime_context import RuntimeContext
from ekorn.functions.sink_contract import SinkContext, TwoPhaseCommitSinkFunction, WrittenBatch
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.time import Duration, millis_of

DEFAULT_RETENTION = Duration.of_days(7)
_PRUNE_INTERVAL_MS = 3_600_000
_CHUNK_ROWS = 1000
_PRUNED = "(pruned)"  # the row of the ledger that shows up to which time rows were deleted
_SINK_CHARS = 200


class Transaction(TypedDict):
    """The rows between two checkpoints of one subtask. Checkpoints hold it as a plain dict."""

    id: str
    sink: str
    subtask: int
    begun_ms: int
    row_count: int
    chunks: list[bytes]  # pickled lists of rows


class JdbcExactlyOnceSink(ColumnForm, TwoPhaseCommitSinkFunction[Any, Transaction]):
    """Writes each record with a statement, exactly once; made by `JdbcSink.exactly_once_sink`."""

    def __init__(
        self,
        sql: str,
        type_info: RowTypeInfo,
        connection_options: JdbcConnectionOptions,
        execution_options: JdbcExecutionOptions,
        *,
        ledger_retention: Duration = DEFAULT_RETENTION,
        clock: Clock | None = None,
    ) -> None:
        """Create the sink from the arguments of `exactly_once_sink`."""
        if execution_options.batch_interval_ms:
            raise ValueError(
                "exactly_once_sink() writes rows when a checkpoint completes, not at an interval; leave out "
                "with_batch_interval_ms(), and choose the checkpoint interval instead"
            )
        self._retention_ms = millis_of(ledger_retention)
        if self._retention_ms <= 0:
            raise ValueError(f"ledger_retention must be above 0, got {ledger_retention!r}")
        self._database = database_of(connection_options)
        statement = parse(sql)
        self._values = RowValues("JdbcSink.exactly_once_sink()", statement, type_info, self._database)
        self._writing = RowStatement(self._database, statement, tuple(type_info.get_field_types()))
        self._given_sql = sql
        self._clock = clock or SystemClock()
        self._transactions = Transactions(self._database, max_retries=execution_options.max_retries, clock=self._clock)
        self._rows: list[Values] = []  # rows of the open transaction that are not pickled yet
        self._sink, self._subtask = "", 0
        self._next_prune_ms = 0
        self._has_ledger = False

    def open(self, runtime_context: RuntimeContext) -> None:
        """Create the ledger if it does not exist."""
        self._sink = runtime_context.get_task_name()[:_SINK_CHARS]
        self._subtask = runtime_context.get_index_of_this_subtask()
        self._ensure_ledger()

    def begin_transaction(self) -> Transaction:
        """Begin with no rows."""
        self._rows = []
        return {
            "id": uuid.uuid4().hex,
            "sink": self._sink,
            "subtask": self._subtask,
            "begun_ms": self._clock.now_ms(),
            "row_count": 0,
            "chunks": [],
        }

    def invoke(self, transaction: Transaction, value: Any, context: SinkContext) -> None:  # type: ignore[override]
        """Keep the values of a record."""
        rows = self._rows
        rows.append(self._values.of(value))
        if len(rows) == _CHUNK_ROWS:
            self._seal(transaction)

    def invoke_batch(self, transaction: Transaction, batch: WrittenBatch, context: SinkContext) -> None:  # type: ignore[override]
        """Keep the values of rows that came as columns, in the form of those of records."""
        for is_full in self._take_batch(batch, _CHUNK_ROWS):
            if is_full:
                self._seal(transaction)

    def pre_commit(self, transaction: Transaction) -> None:
        """Put the last rows into the transaction; the checkpoint makes them durable."""
        if self._rows:
            self._seal(transaction)

    def _seal(self, transaction: Transaction) -> None:
        transaction["chunks"].append(pickle.dumps(self._rows, protocol=5))
        transaction["row_count"] += len(self._rows)
        self._rows = []

    def abort(self, transaction: Transaction) -> None:
        """Forget the rows: they are nowhere else."""

    def commit(self, transaction: Transaction) -> None:
        """Write the rows and their ledger row in one transaction of the database, unless that was done before."""
        if not transaction["row_count"]:
            return
        self._ensure_ledger()
        activity = f"commit {transaction['row_count']} rows of transaction {transaction['id']}"
        self._transactions.run(activity, self._given_sql, lambda cursor: self._write(cursor, transaction))
        self._prune_if_due(transaction["sink"])

    def _write(self, cursor: Any, transaction: Transaction) -> None:
        sink, subtask = transaction["sink"], transaction["subtask"]
        new = (sink, transaction["id"], subtask, transaction["row_count"], self._clock.now_ms())
        # A second committer of the same id waits here for the first one, then inserts nothing.
        cursor.execute(self._spelled(f"INSERT INTO {LEDGER} VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"), new)
        if cursor.rowcount == 0:
            return
        point("jdbc-ledger", subtask)
        self._check_not_pruned(cursor, transaction)
        self._writing.run(cursor, map(pickle.loads, transaction["chunks"]), transaction["row_count"])
        point("jdbc-rows", subtask)

    def _check_not_pruned(self, cursor: Any, transaction: Transaction) -> None:
        """Refuse a transaction whose row of the ledger may have been deleted because of its age."""
        cursor.execute(
            self._spelled(f"SELECT committed_ms FROM {LEDGER} WHERE sink = ? AND transaction_id = ?"),
            (transaction["sink"], _PRUNED),
        )
        pruned = cursor.fetchone()
        if pruned is not None and transaction["begun_ms"] < pruned[0]:
            raise LedgerRowExpired(
                self._database.shown,
                f"commit {transaction['row_count']} rows of transaction {transaction['id']}",
                self._given_sql,
                f"the checkpoint is older than the oldest row of the table {LEDGER}, so it is unknown whether the rows "
                "were written; restore a newer checkpoint, or drop the rows: give the sink a new uid and allow "
                "non-restored state",
            )

    def _prune_if_due(self, sink: str) -> None:
        now_ms = self._clock.now_ms()
        if now_ms < self._next_prune_ms:
            return
        self._next_prune_ms = now_ms + _PRUNE_INTERVAL_MS
        before_ms = now_ms - self._retention_ms
        self._transactions.run("prune the ledger", None, lambda cursor: self._prune(cursor, sink, before_ms))

    def _prune(self, cursor: Any, sink: str, before_ms: int) -> None:
        cursor.execute(
            self._spelled(f"DELETE FROM {LEDGER} WHERE sink = ? AND committed_ms < ? AND transaction_id <> ?"),
            (sink, before_ms, _PRUNED),
        )
        if cursor.rowcount:
            cursor.execute(
                self._spelled(
                    f"INSERT INTO {LEDGER} VALUES (?, ?, 0, 0, ?) ON CONFLICT (sink, transaction_id) DO UPDATE "
                    f"SET committed_ms = excluded.committed_ms WHERE {LEDGER}.committed_ms < excluded.committed_ms"
                ),
                (sink, _PRUNED, before_ms),
            )

    def _ensure_ledger(self) -> None:
        # Transactions of a restored checkpoint are committed before `open`.
        if not self._has_ledger:
            self._transactions.run(f"create the table {LEDGER}", None, self._database.create_ledger)
            self._has_ledger = True

    def _spelled(self, sql: str) -> str:
        return self._database.spelled(parse(sql))

    def close(self) -> None:
        """Close the connection."""
        self._transactions.close()

    def __repr__(self) -> str:
        return f"JdbcExactlyOnceSink({self._given_sql!r}, {self._database.shown!r})"
