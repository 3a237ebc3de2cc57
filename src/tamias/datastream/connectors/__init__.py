"""Connectors: where streams come from and go to."""

from __future__ import annotations

from tamias.datastream.connectors.base import DeliveryGuarantee, Sink, Source

__all__ = ["DeliveryGuarantee", "Sink", "Source"]
