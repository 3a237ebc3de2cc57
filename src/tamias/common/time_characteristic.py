"""`TimeCharacteristic`: the notion of time of a job, as in Flink 1.x."""

from tamias.config.time_characteristic import TimeCharacteristic

__all__ = ["TimeCharacteristic"]
