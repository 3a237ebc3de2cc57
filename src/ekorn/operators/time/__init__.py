"""Timestamps, watermarks and timers."""
