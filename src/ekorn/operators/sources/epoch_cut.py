"""`EpochCut`: tells the sources of a slot, while they read, that their epoch is to end now."""

from __future__ import annotations

__all__ = ["EpochCut"]


class EpochCut:
    """Which epochs of a slot are to end before their budgets are spent. One thread writes, any thread reads."""

    def __init__(self) -> None:
        self._last = -1

    def cut(self, number: int) -> None:
        """Let the sources read no more in an epoch, nor in those before it."""
        self._last = max(self._last, number)

    def ends(self, number: int) -> bool:
        """Return whether an epoch is to end now."""
        return number <= self._last
