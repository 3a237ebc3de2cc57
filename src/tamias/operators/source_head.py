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
    """Limits what a source subtask reads in one epoch."""

    max_records: int
    max_ms: int
    group_watermarks: Mapping[str, int] = field(default_factory=dict)  # lowest, by alignment group


@dataclass(slots=True)
class SourceProgress:
    """The input that a source subtask read in one epoch."""

    records: int = 0
    backlog: bool = False  # the budget was spent before all available records were read
    finished: bool = False


class SourceHead(RuntimeOperator):
    """The head of a source's chain."""

    @abstractmethod
    def read(self, budget: Budget, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        """Yield runs of records, and events between them, until the budget is spent or no records are available."""

    def cut(self, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        """Stop the source, and yield what it had handed over until then. It continues after `after_snapshot`."""
        return iter(())

    def group_watermarks(self) -> dict[str, int]:
        """Return the watermark of the source's alignment group; empty without a group, or while idle."""
        return {}

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        emit(value, time)
