"""Runs in the driver: registers the data sources of savepoints with a session of Spark."""

from __future__ import annotations

from typing import Any

from ekorn.engine.spark.data_frames.result_frames import register_source
from ekorn.state_processor.spark.metadata_source import EkornStateMetadataSource
from ekorn.state_processor.spark.state_source import EkornStateSource

__all__ = ["register_state_sources"]


def register_state_sources(session: Any) -> None:
    """Make the formats `ekorn-state` and `ekorn-state-metadata` known to a session of Spark.

    Example:
        register_state_sources(spark)
        spark.read.format("ekorn-state").option("operatorUid", "count").load("/savepoints/savepoint-1")
    """
    register_source(session, EkornStateSource)
    register_source(session, EkornStateMetadataSource)
