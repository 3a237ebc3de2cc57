"""`ExecutionConfig`: the execution settings of a job."""

from ekorn.config.execution_config import ExecutionConfig

__all__ = ["ExecutionConfig"]
