"""A source of whole numbers."""

from ekorn.connectors.number_seq import NumberSequenceSource

__all__ = ["NumberSequenceSource"]
