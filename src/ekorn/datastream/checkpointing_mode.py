"""`CheckpointingMode`: the guarantee for the state after a failure."""

from __future__ import annotations

from ekorn.config.choices import CheckpointingMode

__all__ = ["CheckpointingMode"]
