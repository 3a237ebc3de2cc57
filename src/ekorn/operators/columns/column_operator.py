"""`ColumnOperator`: the base of operators that turn a batch of columns into batches of columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.columns.column_batch import ColumnBatch
from ekorn.operators.operator import RuntimeOperator


class ColumnOperator(RuntimeOperator):
    """Turns each batch into any number of batches."""

    divides_batches = True
    """Whether a batch that fails may be processed again in parts, to find the rows at fault: if there is no state."""

    @abstractmethod
    def process(self, batch: ColumnBatch) -> Iterable[ColumnBatch]:
        """Return the batches that a batch becomes. Batches without rows are dropped."""

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        if self.record_errors is not None and self.divides_batches:
            self._generate_by_halves(code, value, emit)
            return
        result = code.fresh("v")
        process = code.bind(self.process, "process")
        with code.block(f"for {result} in {process}({value}):"), code.block(f"if len({result}):"):
            emit(result, "None")

    def _generate_by_halves(self, code: CodeBuilder, value: str, emit: Emit) -> None:
        """Generate the statements that skip the rows of a batch that fail, and process all others.

        A batch that fails is halved until the rows at fault are alone. No result leaves before its part is processed.
        """
        assert self.record_errors is not None
        parts, part, results, result = (code.fresh(hint) for hint in ("parts", "part", "results", "v"))
        code.line(f"{parts} = {code.bind(Parts, 'parts')}({value})")
        with code.block(f"for {part} in {parts}:"), code.of_record(part):
            with code.block("try:"):
                code.line(f"{results} = list({code.bind(self.process, 'process')}({part}))")
            with code.block("except Exception as error:"):
                code.line(f"if {parts}.halve({part}): continue")
                code.line(f"{part} = {part}.only_row()")
                code.line(f"if not {code.bind(self.record_errors.handles, 'handles')}(error, None): raise")
                code.line("continue")
            with code.block(f"for {result} in {results}:"), code.block(f"if len({result}):"):
                emit(result, "None")


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
