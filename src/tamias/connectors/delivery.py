"""What a sink promises about its records, and sinks that change their stream first."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from typing import Any


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
    def apply(self, ds: Any) -> Any:
        """Return the stream to hand to the sink; `ds` and the result are `DataStream`s, a class of a later room."""


class SupportsPreprocessing(ABC):
    """A sink that wants its stream changed first."""

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None:
        """Return what changes the stream, or None."""
