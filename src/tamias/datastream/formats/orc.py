"""ORC: files of rows."""

from tamias.connectors.formats.orc_files import OrcBulkWriters

__all__ = ["OrcBulkWriters"]
