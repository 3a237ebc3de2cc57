"""The streams of loops that `iterate` begins."""

from tamias.program.iterations import ConnectedIterativeStreams, IterativeStream, Step

__all__ = ["ConnectedIterativeStreams", "IterativeStream", "Step"]
