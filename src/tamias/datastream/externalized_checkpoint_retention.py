"""What becomes of checkpoints when the job ends."""

from __future__ import annotations

from tamias.contracts.checkpointing import ExternalizedCheckpointRetention

__all__ = ["ExternalizedCheckpointRetention"]
