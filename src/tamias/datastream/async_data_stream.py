"""`AsyncDataStream`: asking other systems about the records of a stream, many requests at a time."""

from tamias.program.async_data_stream import AsyncDataStream

__all__ = ["AsyncDataStream"]
