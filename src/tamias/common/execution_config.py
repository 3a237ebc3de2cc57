"""`ExecutionConfig`: the execution settings of a job."""

from tamias.config.execution_config import ExecutionConfig

__all__ = ["ExecutionConfig"]
