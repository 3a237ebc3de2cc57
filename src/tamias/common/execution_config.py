"""`ExecutionConfig`: the settings of a job under the names programs know, kept in a `Configuration`."""

from tamias.config.execution_config import ExecutionConfig

__all__ = ["ExecutionConfig"]
