"""Runs in the driver: registers the data sources of savepoints with a session of Spark."""

from __future__ import annotations

from typing import Any

from tamias.engine.spark.data_frames.result_frames import register_source
from tamias.state_processor.spark.metadata_source import TamiasStateMetadataSource
from tamias.state_processor.spark.state_source import TamiasStateSource

__all__ = ["register_state_sources"]


def register_state_sources(session: Any) -> None:
    """Make the formats `tamias-state` and `tamias-state-metadata` known to a session of Spark.

    Example:
        register_state_sources(spark)
        spark.read.format("tamias-state").option("operatorUid", "count").load("/savepoints/savepoint-1")
    """
    register_source(session, TamiasStateSource)
    register_source(session, TamiasStateMetadataSource)
