"""The base classes of connectors: sources, sinks, and sinks that transform their stream first."""

from tamias.connectors.delivery import DeliveryGuarantee, StreamTransformer, SupportsPreprocessing
from tamias.functions.sink_contract import Sink
from tamias.functions.source_contract import Source

__all__ = ["DeliveryGuarantee", "Sink", "Source", "StreamTransformer", "SupportsPreprocessing"]
