"""`JobStatus`: the state of a job in its life cycle."""

from tamias.functions.job_status import JobStatus

__all__ = ["JobStatus"]
