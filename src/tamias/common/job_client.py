"""`JobClient`: the user's hold on a running job. The work is done by the job's handle."""

from tamias.program.job_client import JobClient

__all__ = ["JobClient"]
