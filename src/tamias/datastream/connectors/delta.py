"""Delta tables: one version of the table per checkpoint; a version read once."""

from tamias.connectors.lakes.delta import DeltaSink, DeltaSource

__all__ = ["DeltaSink", "DeltaSource"]
