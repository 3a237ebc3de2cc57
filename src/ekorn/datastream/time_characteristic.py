"""`TimeCharacteristic`, at its path in PyFlink 1.x."""

from __future__ import annotations

from ekorn.config.time_characteristic import TimeCharacteristic

__all__ = ["TimeCharacteristic"]
