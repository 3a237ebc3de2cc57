"""`JobStatus`: the state of a job in its life cycle."""

from ekorn.functions.results.job_status import JobStatus

__all__ = ["JobStatus"]
