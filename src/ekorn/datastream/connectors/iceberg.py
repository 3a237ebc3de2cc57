"""Iceberg tables: one snapshot of the table per checkpoint; a snapshot read once."""

from ekorn.connectors.lakes.iceberg import IcebergSink, IcebergSource

__all__ = ["IcebergSink", "IcebergSource"]
