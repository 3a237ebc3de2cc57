"""`ExternalizedCheckpointRetention`: whether checkpoints are kept when the job fails or is cancelled."""

from __future__ import annotations

from ekorn.config.choices import ExternalizedCheckpointRetention

__all__ = ["ExternalizedCheckpointRetention"]
