"""`RuntimeExecutionMode`: whether a job emits results as records arrive or only final ones."""

from __future__ import annotations

from ekorn.config.choices import RuntimeExecutionMode

__all__ = ["RuntimeExecutionMode"]
