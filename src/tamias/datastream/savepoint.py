"""Savepoints without a job: describe one, dispose of one. A `JobClient` takes savepoints."""

from tamias.checkpoint.describe import describe
from tamias.checkpoint.savepoint_files import dispose_savepoint
from tamias.config.savepoint_format import SavepointFormatType

__all__ = ["SavepointFormatType", "describe", "dispose_savepoint"]
