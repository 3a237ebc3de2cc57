"""Savepoints without a job: what is in one, and how to dispose of it. Taking one is the `JobClient`'s business."""

from tamias.checkpoint.describe import describe
from tamias.checkpoint.savepoint_files import dispose_savepoint
from tamias.config.savepoint_format import SavepointFormatType

__all__ = ["SavepointFormatType", "describe", "dispose_savepoint"]
