"""`ColumnOperator`: the base of operators that turn a batch of columns into batches of columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.columns.batch_parts import BatchRow, by_parts, row_at_fault
from ekorn.columns.column_batch import ColumnBatch
from ekorn.operators.operator import RuntimeOperator


class ColumnOperator(RuntimeOperator):
    """Turns each batch into any number of batches.

    A batch that fails names the row at fault. Where records may be skipped, it is processed again in parts, down to the
    rows at fault.
    """

    keeps_state = False
    """Whether processing a batch changes state. Then `attempt` takes back what a part that fails has changed."""

    @abstractmethod
    def process(self, batch: ColumnBatch) -> Iterable[ColumnBatch]:
        """Return the batches that a batch becomes. Batches without rows are dropped."""

    def attempt(self, part: ColumnBatch) -> list[ColumnBatch]:
        """Process rows as a whole; if it raises an exception, nothing has changed. Called where rows may be skipped."""
        assert not self.keeps_state, "an operator with state takes back what a part that fails has changed"
        return list(self.process(part))

    def pieces(self, batch: ColumnBatch) -> Iterable[ColumnBatch]:
        """Return the parts in which `attempt` gets a batch."""
        return (batch,)

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        result = code.fresh("v")
        process = code.bind(self._naming_rows if self.record_errors is None else self._skipping_rows, "process")
        with code.block(f"for {result} in {process}({value}):"), code.block(f"if len({result}):"):
            emit(result, "None")

    def _naming_rows(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        try:
            yield from self.process(batch)
        except Exception as error:
            _failed_row_of_batch = self._row_at_fault(batch, error)  # `Blame` reads the variable
            raise

    def _row_at_fault(self, batch: ColumnBatch, error: Exception) -> BatchRow | None:
        """Return the row at fault, if an exception tells which it is, or if it can be found without changing state."""
        position: Any = getattr(error, "row_in_batch", None)
        if position is not None:
            return BatchRow(batch, position)
        return None if self.keeps_state else row_at_fault(batch, lambda part: list(self.process(part)), error)

    def _skipping_rows(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        assert self.record_errors is not None
        for piece in self.pieces(batch):
            yield from by_parts(piece, self.attempt, self.record_errors)


class Parts(Iterator[ColumnBatch]):
    """The parts of a batch, in the order of their rows."""

    def __init__(self, batch: ColumnBatch) -> None:
        self._left = [batch]  # the next one last

    def __next__(self) -> ColumnBatch:
        if not self._left:
            raise StopIteration
        return self._left.pop()

    def halve(self, part: ColumnBatch) -> bool:
        """Let the halves of a part come next; return False if it has one row."""
        half = len(part) // 2
        if not half:
            return False
        self._left += part.slice(half, len(part) - half), part.slice(0, half)
        return True
