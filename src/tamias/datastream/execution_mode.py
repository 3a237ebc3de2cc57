"""Whether a job runs on as its input does, or to the end of it."""

from __future__ import annotations

from tamias.config.execution_mode import RuntimeExecutionMode

__all__ = ["RuntimeExecutionMode"]
