"""Which notion of time a job goes by, as programs for Flink 1.x say it."""

from tamias.config.time_characteristic import TimeCharacteristic

__all__ = ["TimeCharacteristic"]
