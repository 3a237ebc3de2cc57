"""`TimeCharacteristic`, at its path in PyFlink 1.x."""

from __future__ import annotations

from ekorn.legacy.time_characteristic import TimeCharacteristic

__all__ = ["TimeCharacteristic"]
