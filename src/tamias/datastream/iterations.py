"""Loops in a stream: `iterate`, and the streams that a loop is closed on."""

from tamias.program.iterations import ConnectedIterativeStreams, IterativeStream, Step

__all__ = ["ConnectedIterativeStreams", "IterativeStream", "Step"]
