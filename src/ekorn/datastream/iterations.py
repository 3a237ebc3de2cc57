"""The streams of loops that `iterate` begins."""

from ekorn.program.streams.iterative_stream import ConnectedIterativeStreams, IterativeStream, Step

__all__ = ["ConnectedIterativeStreams", "IterativeStream", "Step"]
