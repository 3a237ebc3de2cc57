"""The sources and sinks of Flink 1.x that `add_source` and `add_sink` take: each stands for a `Source` or a `Sink`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ekorn.functions.sink_contract import Sink
from ekorn.functions.source_contract import Source
from ekorn.functions.watermark_strategy import WatermarkStrategy

__all__ = ["SinkSpelling", "SourceSpelling"]


class SourceSpelling(ABC):
    """An older spelling of a `Source`, for `env.add_source`.

    Attributes:
        watermark_strategy: How timestamps and watermarks are made, for each split of the source.
    """

    watermark_strategy: WatermarkStrategy = WatermarkStrategy.no_watermarks()

    @abstractmethod
    def as_source(self) -> Source:
        """Return the source."""


class SinkSpelling(ABC):
    """An older spelling of a `Sink`, for `stream.add_sink`."""

    @abstractmethod
    def as_sink(self) -> Sink[Any]:
        """Return the sink."""
