"""What connectors are made of: sources, sinks, and sinks that prepare their stream."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tamias.contracts.sinks import Sink
from tamias.contracts.sources import Source

if TYPE_CHECKING:
    from tamias.datastream.stream import DataStream

__all__ = ["DeliveryGuarantee", "Sink", "Source", "StreamTransformer", "SupportsPreprocessing"]


class DeliveryGuarantee(enum.Enum):
    """What a sink promises when the job fails and goes on."""

    EXACTLY_ONCE = 0
    """Every record counts once; it appears when the checkpoint that covers it is complete."""
    AT_LEAST_ONCE = 1
    """No record is lost; some may appear twice."""
    NONE = 2
    """Records may be lost or appear twice."""


class StreamTransformer(ABC):
    """Changes a stream on its way to a sink."""

    @abstractmethod
    def apply(self, ds: DataStream) -> DataStream:
        """The stream that the sink is to be given."""


class SupportsPreprocessing(ABC):
    """A sink that wants its stream changed first."""

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None:
        """What changes the stream, or None."""
