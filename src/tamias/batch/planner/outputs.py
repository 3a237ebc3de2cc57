"""The outputs of a plan in the driver: checked before it runs, made visible together at the end, or removed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from tamias.batch.outputs.output import Output
from tamias.batch.plan.operators import Plan
from tamias.batch.plan.specs import OutputSpec

__all__ = ["PlanOutputs"]

_log = logging.getLogger(__name__)


class PlanOutputs:
    """What the sinks of a plan write to, in one run.

    As a context manager it checks the outputs at the beginning, and removes what was written if the run fails.
    """

    def __init__(self, plan: Plan, job_id: str) -> None:
        self._sinks = [
            (number, sink.spec.output, sink.parallelism)
            for number, sink in enumerate(plan.sinks)
            if isinstance(sink.spec, OutputSpec)
        ]
        self._job_id = job_id
        self._begun: list[tuple[Output, int]] = []

    def __enter__(self) -> PlanOutputs:
        try:
            for _, output, parallelism in self._sinks:
                output.begin(parallelism)
                self._begun.append((output, parallelism))
        except BaseException:
            self._abort()
            raise
        return self

    def commit(self, records: Sequence[list[Any]]) -> None:
        """Make all outputs visible.

        Args:
            records: What each sink of the plan sent to the driver.
        """
        for number, output, parallelism in self._sinks:
            output.commit(records[number], self._job_id, parallelism)

    def __exit__(self, kind: Any, error: BaseException | None, frames: Any) -> None:
        if error is not None:
            self._abort()

    def _abort(self) -> None:
        for output, parallelism in self._begun:
            try:
                output.abort(self._job_id, parallelism)
            except Exception as error:  # what failed before is the error to report
                _log.warning("what a failed job wrote could not be removed: %s", error)
