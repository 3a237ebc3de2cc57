"""Merges the accumulators of all subtasks."""

from __future__ import annotations

from typing import Any

from ekorn.errors import AccumulatorError, EkornError

__all__ = ["merge_accumulators"]


def merge_accumulators(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one accumulator per name.

    Args:
        parts: The accumulators of each subtask, by name.

    Raises:
        AccumulatorError: Two accumulators of different classes have one name, or a merge failed.
    """
    merged: dict[str, Any] = {}
    for part in parts:
        for name, accumulator in part.items():
            found = merged.get(name)
            if found is None:
                merged[name] = accumulator.clone()
            elif type(found) is not type(accumulator):
                raise AccumulatorError(
                    f"accumulator {name!r} is a {type(found).__name__} in one operator and a "
                    f"{type(accumulator).__name__} in another; give them different names"
                )
            else:
                try:
                    found.merge(accumulator)
                except EkornError:
                    raise
                except Exception as error:
                    raise AccumulatorError(f"accumulator {name!r} could not be merged: {error}") from error
    return merged
