"""`JobStatus`: where a job is in its life."""

from tamias.functions.job_status import JobStatus

__all__ = ["JobStatus"]
