"""`SplitStream`: a stream whose records are selected by name, as in Flink 1.x."""

from ekorn.functions.selection import OutputSelector
from ekorn.program.streams.split_stream import SplitStream

__all__ = ["OutputSelector", "SplitStream"]
