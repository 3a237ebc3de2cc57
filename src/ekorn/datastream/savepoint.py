"""Savepoints without a job: describe one, dispose of one. A `JobClient` takes savepoints."""

from ekorn.checkpoint.describe import describe
from ekorn.checkpoint.savepoint_files import dispose_savepoint
from ekorn.config.choices import SavepointFormatType

__all__ = ["SavepointFormatType", "describe", "dispose_savepoint"]
