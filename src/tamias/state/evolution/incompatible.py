"""Why restored values do not fit; internal, turned into `StateMigrationError` once the state is known."""

from __future__ import annotations

from typing import Any

from tamias.state.evolution.type_descriptions import spell


class Incompatible(Exception):
    """Old values cannot be made new ones. Knows the way to the place: fields, elements, keys and values."""

    def __init__(self, reason: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(reason, path)

    def inside(self, place: str) -> Incompatible:
        """The same, seen from the value around it."""
        reason, path = self.args
        return Incompatible(reason, (place, *path))

    def __str__(self) -> str:
        reason, path = self.args
        return f"{'.'.join(path)}: {reason}" if path else str(reason)


def changed(old: Any, new: Any) -> Incompatible:
    """A type that was one thing and is another."""
    return Incompatible(f"was {spell(old)} and is {spell(new)}")
