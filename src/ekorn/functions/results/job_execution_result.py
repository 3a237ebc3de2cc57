"""`JobExecutionResult`: the id, running time and accumulators of a finished job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ekorn.config.job_id import JobID

__all__ = ["JobExecutionResult"]


class JobExecutionResult:
    """The id, running time and accumulators of a finished job.

    Args:
        job_id: The id of the job.
        net_runtime_ms: The running time.
        accumulators: Results by name. An exception in place of a result is raised when that result is read, so that
            the results of the other accumulators can still be read.
    """

    def __init__(self, job_id: JobID, net_runtime_ms: int, accumulators: Mapping[str, Any] | None = None) -> None:
        self._job_id = job_id
        self._net_runtime_ms = net_runtime_ms
        self._accumulators = dict(accumulators or {})

    def get_job_id(self) -> JobID:
        """Return the job's id."""
        return self._job_id

    def get_net_runtime(self) -> int:
        """Return the running time of the job in milliseconds."""
        return self._net_runtime_ms

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """Return the result of one accumulator, or None if no function registered it."""
        return _result(self._accumulators.get(accumulator_name))

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """Return the results of all accumulators by name."""
        return {name: _result(value) for name, value in self._accumulators.items()}

    def __repr__(self) -> str:
        return f"JobExecutionResult(job_id={self._job_id}, net_runtime_ms={self._net_runtime_ms})"

    def __str__(self) -> str:
        lines = [f"job {self._job_id} finished after {self._net_runtime_ms} ms"]
        lines += [f"- {name}: {value!r}" for name, value in self._accumulators.items()]
        return "\n".join(lines)


def _result(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value
