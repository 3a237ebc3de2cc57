"""`AsyncDataStream`: asynchronous requests for the records of a stream."""

from ekorn.program.streams.async_data_stream import AsyncDataStream

__all__ = ["AsyncDataStream"]
