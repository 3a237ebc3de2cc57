"""`CheckpointingMode`: the guarantee for the state after a failure."""

from __future__ import annotations

from ekorn.config.checkpointing import CheckpointingMode

__all__ = ["CheckpointingMode"]
