"""`TimeCharacteristic`, at its path in PyFlink 1.x."""

from __future__ import annotations

from tamias.config.time_characteristic import TimeCharacteristic

__all__ = ["TimeCharacteristic"]
