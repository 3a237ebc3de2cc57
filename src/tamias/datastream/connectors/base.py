"""What connectors are made of: sources, sinks, and sinks that prepare their stream."""

from tamias.connectors.delivery import DeliveryGuarantee, StreamTransformer, SupportsPreprocessing
from tamias.functions.sink_contract import Sink
from tamias.functions.source_contract import Source

__all__ = ["DeliveryGuarantee", "Sink", "Source", "StreamTransformer", "SupportsPreprocessing"]
