"""Connectors: sources and sinks."""

from __future__ import annotations

from tamias.connectors.delivery import DeliveryGuarantee
from tamias.functions.sink_contract import Sink
from tamias.functions.source_contract import Source

__all__ = ["DeliveryGuarantee", "Sink", "Source"]
