"""`JobID`: the name of one submitted job."""

from ekorn.config.job_id import JobID

__all__ = ["JobID"]
