"""Sources whose subtasks read the same steps in an epoch, so that every checkpoint lies between two steps.

The subtasks agree through the driver, as those of an alignment group do: each reports the last step that it could
read, and the next epoch's order has the lowest of them. An epoch reads whole steps, whatever its budget is; the source
keeps its steps short.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ekorn.functions.source_contract import Batch, SteppedReader
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import SourceSpec
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.sources.source_head import Budget, SourceProgress
from ekorn.operators.sources.split_source import SplitSourceOperator
from ekorn.operators.time.watermarks import SourceEvent

_NO_LIMIT = 1 << 62


class SteppedSourceOperator(SplitSourceOperator):
    """Reads the splits of this subtask to the end of the step that the order names."""

    def __init__(self, operator: Operator, spec: SourceSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment)
        self._step_group = f"steps of {operator.id}"

    def read(self, budget: Budget, progress: SourceProgress) -> Iterator[Batch | SourceEvent]:
        step = budget.group_watermarks.get(self._step_group)
        if step is not None:
            for reader in self._stepped():
                reader.allow(step)
        whole_steps = replace(budget, max_records=_NO_LIMIT, max_ms=_NO_LIMIT, max_bytes=_NO_LIMIT)
        yield from super().read(whole_steps, progress)
        progress.backlog = step is not None and any(reader.last_step() > step for reader in self._stepped())

    def group_watermarks(self) -> dict[str, int]:
        found = super().group_watermarks()
        if self._readers:
            found[self._step_group] = min(reader.last_step() for reader in self._stepped())
        return found

    def _stepped(self) -> Iterator[SteppedReader]:
        for _, reader in self._readers.values():
            assert isinstance(reader, SteppedReader), f"{self._source!r} says that it reads in steps"
            yield reader
