"""`split` and `select` of Flink 1.x: a stream whose records have names, and streams of those that have some of them."""

from tamias.functions.selection import OutputSelector
from tamias.program.split_stream import SplitStream

__all__ = ["OutputSelector", "SplitStream"]
