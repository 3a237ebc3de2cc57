"""`CheckpointConfig`: the checkpoint settings of an environment; and a choice that Flink 1.x has at this path."""

from ekorn.config.checkpoint_config import CheckpointConfig
from ekorn.config.choices import ExternalizedCheckpointRetention as ExternalizedCheckpointCleanup

__all__ = ["CheckpointConfig", "ExternalizedCheckpointCleanup"]
