"""What becomes of checkpoints when the job ends."""

from __future__ import annotations

from tamias.config.checkpointing import ExternalizedCheckpointRetention

__all__ = ["ExternalizedCheckpointRetention"]
