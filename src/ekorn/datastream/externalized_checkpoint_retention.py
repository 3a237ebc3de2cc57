"""`ExternalizedCheckpointRetention`: whether checkpoints are kept when the job fails or is cancelled."""

from __future__ import annotations

from ekorn.config.checkpointing import ExternalizedCheckpointRetention

__all__ = ["ExternalizedCheckpointRetention"]
