"""A source of whole numbers."""

from tamias.connectors.number_seq import NumberSequenceSource

__all__ = ["NumberSequenceSource"]
