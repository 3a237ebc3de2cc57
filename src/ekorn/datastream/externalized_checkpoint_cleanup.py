"""`ExternalizedCheckpointCleanup`: the name of `ExternalizedCheckpointRetention` in Flink 1.x."""

from __future__ import annotations

from ekorn.config.choices import ExternalizedCheckpointRetention as ExternalizedCheckpointCleanup

__all__ = ["ExternalizedCheckpointCleanup"]
