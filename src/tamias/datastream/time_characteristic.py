"""`TimeCharacteristic` under the path where PyFlink 1.x has it."""

from __future__ import annotations

from tamias.config.time_characteristic import TimeCharacteristic

__all__ = ["TimeCharacteristic"]
