"""The outputs of a plan in the driver: checked before it runs, made visible at the end, or removed.

Outputs become visible one after another, when all of them have been written. Nothing makes that one step: they may be
on different file systems, and a format of the program is asked to complete itself. Flink: promises nothing either.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ekorn.batch.outputs.output import Output
from ekorn.batch.plan.data_set_specs import OutputSpec
from ekorn.batch.plan.operators import Plan, PlanOperator
from ekorn.errors import OutputsPartlyVisibleError

__all__ = ["PlanOutputs"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _PlanOutput:
    """What one sink writes to."""

    number: int  # of the sink in its plan
    sink: PlanOperator
    output: Output

    def __str__(self) -> str:
        return f"{self.sink.name!r}" + (f" ({self.sink.call_site})" if self.sink.call_site else "")


class PlanOutputs:
    """What the sinks of a plan write to, in one run.

    As a context manager it checks the outputs at the beginning, and removes what was written if the run fails.
    """

    def __init__(self, plan: Plan, job_id: str) -> None:
        self._outputs = [
            _PlanOutput(number, sink, sink.spec.output)
            for number, sink in enumerate(plan.sinks)
            if isinstance(sink.spec, OutputSpec)
        ]
        self._job_id = job_id
        self._begun: list[_PlanOutput] = []  # and not yet visible

    def __enter__(self) -> PlanOutputs:
        try:
            for each in self._outputs:
                each.output.begin(each.sink.parallelism)
                self._begun.append(each)
        except BaseException:
            self._abort()
            raise
        return self

    def commit(self, records: Sequence[list[Any]]) -> None:
        """Make all outputs visible.

        Args:
            records: What each sink of the plan sent to the driver.

        Raises:
            OutputsPartlyVisibleError: One of several outputs failed; the error names those that are visible.
        """
        for place, each in enumerate(self._outputs):
            try:
                each.output.commit(records[each.number], self._job_id, each.sink.parallelism)
            except Exception as error:
                if len(self._outputs) == 1:
                    raise
                visible, missing = self._outputs[:place], self._outputs[place + 1 :]
                raise OutputsPartlyVisibleError(
                    str(each), f"{type(error).__name__}: {error}", tuple(map(str, visible)), tuple(map(str, missing))
                ) from error
            self._begun.remove(each)

    def __exit__(self, kind: Any, error: BaseException | None, frames: Any) -> None:
        if error is not None:
            self._abort()

    def _abort(self) -> None:
        for each in self._begun:
            try:
                each.output.abort(self._job_id, each.sink.parallelism)
            except Exception as error:  # what failed before is the error to report
                _log.warning("what a failed job wrote could not be removed: %s", error)
