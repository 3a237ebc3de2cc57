"""`CheckpointConfig`: the checkpoint settings of an environment."""

from tamias.config.checkpoint_config import CheckpointConfig

__all__ = ["CheckpointConfig"]
