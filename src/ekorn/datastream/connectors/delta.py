"""Delta tables: one version of the table per checkpoint; a version read once."""

from ekorn.connectors.lakes.delta import DeltaSink, DeltaSource

__all__ = ["DeltaSink", "DeltaSource"]
