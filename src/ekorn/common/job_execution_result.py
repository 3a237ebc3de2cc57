"""`JobExecutionResult`: the runtime and the accumulators of a finished job."""

from ekorn.functions.job_execution_result import JobExecutionResult

__all__ = ["JobExecutionResult"]
