"""`JobID`: the name of one submitted job."""

from tamias.functions.job_id import JobID

__all__ = ["JobID"]
