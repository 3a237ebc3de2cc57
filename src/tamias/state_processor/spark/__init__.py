"""Savepoints as data sources of Spark: `tamias-state` and `tamias-state-metadata`."""

from tamias.state_processor.spark.registration import register_state_sources

__all__ = ["register_state_sources"]
