"""`JobID`: the name of one submitted job."""

from tamias.config.job_id import JobID

__all__ = ["JobID"]
