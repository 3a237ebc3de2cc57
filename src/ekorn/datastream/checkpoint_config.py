"""`CheckpointConfig`: the checkpoint settings of an environment."""

from ekorn.config.checkpoint_config import CheckpointConfig

__all__ = ["CheckpointConfig"]
