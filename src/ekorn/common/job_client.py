"""`JobClient`: watches and controls a running job."""

from ekorn.program.running.job_client import JobClient

__all__ = ["JobClient"]
