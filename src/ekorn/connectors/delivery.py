"""The delivery guarantees of sinks, and sinks that transform their stream first."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from typing import Any


class DeliveryGuarantee(enum.Enum):
    """The guarantee of a sink for a job that fails and restarts."""

    EXACTLY_ONCE = 0
    """Every record appears exactly once, when the checkpoint that covers it completes."""
    AT_LEAST_ONCE = 1
    """No record is lost; some may appear twice."""
    NONE = 2
    """Records may be lost or appear twice."""


class StreamTransformer(ABC):
    """Transforms a stream before its sink."""

    @abstractmethod
    def apply(self, ds: Any) -> Any:
        """Return the stream for the sink; `ds` and the result are `DataStream`s, a class of a later room."""


class SupportsPreprocessing(ABC):
    """A sink whose stream is transformed first."""

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None:
        """Return the transformer of the stream, or None."""
