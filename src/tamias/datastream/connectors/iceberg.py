"""Iceberg tables: one snapshot of the table per checkpoint; a snapshot read once."""

from tamias.connectors.lakes.iceberg import IcebergSink, IcebergSource

__all__ = ["IcebergSink", "IcebergSource"]
