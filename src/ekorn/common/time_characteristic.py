"""`TimeCharacteristic`: the notion of time of a job, as in Flink 1.x."""

from ekorn.legacy.time_characteristic import TimeCharacteristic

__all__ = ["TimeCharacteristic"]
