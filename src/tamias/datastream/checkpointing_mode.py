"""What a record counts for after a failure."""

from __future__ import annotations

from tamias.contracts.checkpointing import CheckpointingMode

__all__ = ["CheckpointingMode"]
