"""`JdbcSink`: writes rows to a database in batches, at least once; or exactly once, see `exactly_once.py`."""

from __future__ import annotations

from typing import Any

from ekorn.clock import Clock, SystemClock
from ekorn.connectors.jdbc.column_form import ColumnForm, RowStatement
from ekorn.connectors.jdbc.database import RowValues, Values, parse
from ekorn.connectors.jdbc.databases import database_of
from ekorn.connectors.jdbc.exactly_once import DEFAULT_RETENTION, JdbcExactlyOnceSink
from ekorn.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from ekorn.connectors.jdbc.repeated_transactions import Transactions
from ekorn.functions.runtime_context import RuntimeContext
from ekorn.functions.sink_contract import BufferingSinkFunction, SinkContext, WrittenBatch
from ekorn.functions.state.checkpointed import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
)
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.time import Duration

__all__ = ["JdbcSink"]


class JdbcSink(ColumnForm, BufferingSinkFunction[Any], CheckpointedFunction):
    """Writes each record with a statement, in batches; made by `JdbcSink.sink`.

    A batch is one transaction. It is written when it is full, after its interval, at every checkpoint and at the end of
    the input. After a failure the rows since the last checkpoint are written again: at least once. An upsert makes the
    second write harmless; `exactly_once_sink` needs none.
    """

    def __init__(
        self,
        sql: str,
        type_info: RowTypeInfo,
        connection_options: JdbcConnectionOptions,
        execution_options: JdbcExecutionOptions,
        clock: Clock | None = None,
    ) -> None:
        """Create the sink from the arguments of `sink`."""
        database = database_of(connection_options)
        statement = parse(sql)
        self._values = RowValues("JdbcSink.sink()", statement, type_info, database)
        self._writing = RowStatement(database, statement, tuple(type_info.get_field_types()))
        self._given_sql = sql
        self._shown = database.shown
        self._options = execution_options
        self._transactions = Transactions(
            database, max_retries=execution_options.max_retries, clock=clock or SystemClock()
        )
        self._rows: list[Values] = []
        self._due_ms: int | None = None

    @staticmethod
    def sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Create a sink that writes every record at least once.

        Args:
            sql: The statement for one record, with a `?` for each field. `??` is PostgreSQL's operator `?`.
            type_info: The type of the records.
            jdbc_connection_options: The database.
            jdbc_execution_options: The size of batches and the number of retries.
        """
        return JdbcSink(sql, type_info, jdbc_connection_options, jdbc_execution_options or JdbcExecutionOptions())

    @staticmethod
    def exactly_once_sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
        ledger_retention: Duration = DEFAULT_RETENTION,
    ) -> JdbcExactlyOnceSink:
        """Create a sink that writes every record exactly once, when the checkpoint that covers it is complete.

        The rows wait in the checkpoint. When it is complete, they are written in one transaction, together with a row
        of the table `ekorn_ledger` of the same database, which shows that they were. The sink creates the table.

        Args:
            sql: The statement for one record, with a `?` for each field.
            type_info: The type of the records.
            jdbc_connection_options: The database.
            jdbc_execution_options: The number of retries, and of rows that are sent to the database at a time.
            ledger_retention: How long rows of the ledger are kept. A checkpoint that is older when it is restored may
                hold rows that may or may not have been written; the restore then fails.
        """
        options = jdbc_execution_options or JdbcExecutionOptions()
        return JdbcExactlyOnceSink(sql, type_info, jdbc_connection_options, options, ledger_retention=ledger_retention)

    def open(self, runtime_context: RuntimeContext) -> None:
        """Connect to the database."""
        self._transactions.run("connect", None, lambda cursor: None)

    def invoke(self, value: Any, context: SinkContext) -> None:
        """Add a record to the batch."""
        rows = self._rows
        rows.append(self._values.of(value))
        if len(rows) == self._options.batch_size:
            self._flush()
        elif self._due_ms is None and self._options.batch_interval_ms:
            self._due_ms = context.current_processing_time() + self._options.batch_interval_ms

    def invoke_batch(self, batch: WrittenBatch, context: SinkContext) -> None:
        """Add rows that came as columns to the batch."""
        for is_full in self._take_batch(batch, self._options.batch_size):
            if is_full:
                self._flush()
        if self._rows and self._due_ms is None and self._options.batch_interval_ms:
            self._due_ms = context.current_processing_time() + self._options.batch_interval_ms

    def next_flush_ms(self) -> int | None:
        """Return when the interval of the batch ends."""
        return self._due_ms

    def flush_due(self, now_ms: int) -> None:
        """Write the batch if its interval has ended."""
        if self._due_ms is not None and now_ms >= self._due_ms:
            self._flush()

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Do nothing: the sink has no state."""

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Write the batch, so that the checkpoint covers no row that is not written."""
        self._flush()

    def finish(self) -> None:
        """Write the last batch."""
        self._flush()

    def close(self) -> None:
        """Close the connection. Rows of an unfinished batch are in no checkpoint, and are read again."""
        self._transactions.close()

    def _flush(self) -> None:
        rows = self._rows
        if rows:
            self._transactions.run(
                f"write a batch of {len(rows)} rows",
                self._given_sql,
                lambda cursor: self._writing.run(cursor, [rows], len(rows)),
            )
            rows.clear()
        self._due_ms = None

    def __repr__(self) -> str:
        return f"JdbcSink({self._given_sql!r}, {self._shown!r})"
