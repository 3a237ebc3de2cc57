"""`JobExecutionResult`: the runtime and the accumulators of a finished job."""

from ekorn.functions.results.job_execution_result import JobExecutionResult

__all__ = ["JobExecutionResult"]
