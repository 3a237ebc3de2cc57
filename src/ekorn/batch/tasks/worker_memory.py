"""How much memory the Python worker uses."""

from __future__ import annotations

__all__ = ["used_memory_mb"]


def used_memory_mb() -> float:
    """Return the memory that this process uses, as PySpark measures it for its own limits."""
    from pyspark.shuffle import get_used_memory  # here: a program is drawn without PySpark

    return float(get_used_memory())
