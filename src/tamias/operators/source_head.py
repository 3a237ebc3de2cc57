"""A source at the head of its chain.

Each epoch the source is asked for records until its budget is spent or no more records are available. Positions are
operator state, captured at the end of the epoch that carries the checkpoint.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tamias.codegen.chain_operator import Emit
from tamias.codegen.code_builder import CodeBuilder
from tamias.functions.source_contract import Batch
from tamias.operators.operator import RuntimeOperator
from tamias.operators.watermarks import SourceEvent


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a source subtask may read in one epoch."""

    max_records: int
    max_ms: int
    group_watermarks: Mapping[str, int] = field(default_factory=dict)  # how far each alignment group has come


@dataclass(slots=True)
class SourceProgress:
    """How an epoch went for a source subtask."""

    records: int = 0
    backlog: bool = False  # it stopped because its budget was spent: there was more
    finished: bool = False


class SourceHead(RuntimeOperator):
    """The head of a source's chain."""

    @abstractmethod
    def read(self, budget: Budget, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        """Runs of records and what lies between them, until the budget is spent or nothing more is there."""

    def cut(self, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        """Stop the source where it stands; what it had handed over by then. `after_snapshot` lets it go on."""
        return iter(())

    def group_watermarks(self) -> dict[str, int]:
        """Return the watermark of the source's alignment group; empty without a group, or while idle."""
        return {}

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        emit(value, time)
