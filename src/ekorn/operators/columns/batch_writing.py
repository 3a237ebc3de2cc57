"""The statements that write batches of columns to a sink, for writers with either kind of committer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.codegen.chain_operator import RecordErrorHandler
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.codegen.record_errors import ABOUT_A_RECORD
from ekorn.columns.column_batch import ColumnBatch
from ekorn.operators.columns.column_operator import Parts


def generate_write_batch(
    code: CodeBuilder, value: str, write_batch: Callable[[ColumnBatch], None], handler: RecordErrorHandler | None
) -> None:
    """Generate the statements that write the batch in a variable.

    If records may be skipped, a batch with a row that the writer refuses is written in halves. A writer refuses a row
    before it writes any row of the batch, so no row is written twice. Other exceptions say nothing about what is
    written, and fail the job.
    """
    write = code.bind(write_batch, "write_batch")
    if handler is None:
        code.line(f"{write}({value})")
        return
    parts, part = code.fresh("parts"), code.fresh("part")
    refusals: tuple[type[Any], ...] = ABOUT_A_RECORD
    code.line(f"{parts} = {code.bind(Parts, 'parts')}({value})")
    with code.block(f"for {part} in {parts}:"), code.of_record(part):
        with code.block("try:"):
            code.line(f"{write}({part})")
        with code.block(f"except {code.bind(refusals, 'refusals')} as error:"):
            code.line(f"if {parts}.halve({part}): continue")
            time = code.fresh("t")
            code.line(f"{time} = {part}.only_time()")
            code.line(f"{part} = {part}.only_row()")
            code.line(f"if not {code.bind(handler.handles, 'handles')}(error, {time}): raise")
