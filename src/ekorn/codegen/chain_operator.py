"""An operator as the chain compiler needs it. `operators/operator.py` implements it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ekorn.codegen.code_builder import CodeBuilder
from ekorn.errors import UnsupportedOperationError, preview

Emit = Callable[[str, str], None]
"""Generates the statements for an emitted record, given the variables that hold its value and its timestamp."""

GenerateRecord = Callable[[CodeBuilder, str, str, Emit, dict[str, Emit]], None]
"""Generates the statements that process one record: the type of `ChainOperator.generate`."""

Out = Callable[[Any, int | None], None]
"""Emits a record outside the generated loop, given its value and its timestamp."""


class RecordErrorHandler(Protocol):
    """Decides about the exceptions that an operator raises for single records. See `record_errors.py`."""

    dead_letters: Out | None
    """Emits a dead letter; None if the operator's dead letters are not read."""

    def handles(self, error: Exception, time_ms: int | None) -> bool:
        """Return whether an exception is handled; otherwise the caller raises it again."""

    def is_about_a_record(self, error: Exception) -> bool:
        """Return whether an exception of a batch of columns is the fault of rows in it, and of this operator."""

    def handles_row(self, row: Any, where: str, error: Exception, time_ms: int | None) -> bool:
        """Return whether the exception of one row of a batch is handled; otherwise the caller raises it again."""

    def skip_malformed(self, content: Any, error: Exception) -> None:
        """Count content of a source that is not a record, and send it to the dead letters if they are read."""


class ChainOperator(Protocol):
    """An operator that generates its part of the chain's loop."""

    needs_out: bool
    """Whether the operator also emits outside the loop: from timers, or when the input ends."""

    emits_to_sides: bool
    """Whether a function emits to side outputs by its context, while its record is processed in the loop."""

    handles_record_errors: bool
    """Whether the generated statements decide about exceptions of single records themselves."""

    out: Out
    side_out: dict[str, Out]

    record_errors: RecordErrorHandler | None
    """Decides about exceptions of single records; None if each of them fails the job."""

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        """Generate the statements that process the record in variable `value`; `time` is a variable or `None`."""

    def inputs(self) -> tuple[GenerateRecord, ...]:
        """Return one generator of statements per input."""


class RefusedSideOutputs(dict[str, Any]):
    """Stands for the side outputs of an operator whose result is split. Flink: the two cannot be combined."""

    def get(self, tag_id: str, default: Any = None) -> Any:
        raise UnsupportedOperationError(
            f"the side output {preview(tag_id)} is used by an operator whose result is split; "
            "call split() on the result of another operator, or use side outputs instead of split()"
        )
