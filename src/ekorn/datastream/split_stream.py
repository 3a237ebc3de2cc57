"""`SplitStream`: a stream whose records are selected by name, as in Flink 1.x."""

from ekorn.legacy.selection import OutputSelector
from ekorn.program.streams.stream_kinds import SplitStream

__all__ = ["OutputSelector", "SplitStream"]
