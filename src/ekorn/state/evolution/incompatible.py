"""`Incompatible`: an internal error, which becomes a `StateMigrationError` where the name of the state is known."""

from __future__ import annotations

from typing import Any

from ekorn.state.evolution.type_descriptions import spell


class Incompatible(Exception):
    """Old values cannot be converted to the new type. The path names the fields, elements and values on the way."""

    def __init__(self, reason: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(reason, path)

    def inside(self, place: str) -> Incompatible:
        """Return the same error with a path that starts one value further out."""
        reason, path = self.args
        return Incompatible(reason, (place, *path))

    def __str__(self) -> str:
        reason, path = self.args
        return f"{'.'.join(path)}: {reason}" if path else str(reason)


def changed(old: Any, new: Any) -> Incompatible:
    """Return the error for a type that cannot be converted to another."""
    return Incompatible(f"was {spell(old)} and is {spell(new)}")
