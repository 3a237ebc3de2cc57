"""`RuntimeExecutionMode`: whether a job emits results as records arrive or only final ones."""

from __future__ import annotations

from ekorn.config.execution_mode import RuntimeExecutionMode

__all__ = ["RuntimeExecutionMode"]
