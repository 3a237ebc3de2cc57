"""`CheckpointConfig`: when checkpoints are taken, where they go and what becomes of them."""

from tamias.config.checkpoint_config import CheckpointConfig

__all__ = ["CheckpointConfig"]
