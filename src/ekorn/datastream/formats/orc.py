"""ORC: files of rows."""

from ekorn.connectors.formats.orc_files import OrcBulkWriters

__all__ = ["OrcBulkWriters"]
