"""Savepoints as data sources of Spark: `ekorn-state` and `ekorn-state-metadata`."""

from ekorn.state_processor.spark.registration import register_state_sources

__all__ = ["register_state_sources"]
