"""`JobExecutionResult`: what a job that ran to its end leaves behind."""

from tamias.functions.job_execution_result import JobExecutionResult

__all__ = ["JobExecutionResult"]
