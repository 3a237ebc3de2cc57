"""`JobClient`: watches and controls a running job."""

from tamias.program.job_client import JobClient

__all__ = ["JobClient"]
