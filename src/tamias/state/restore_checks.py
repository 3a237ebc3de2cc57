"""What must agree between a restored state and the state that the job declares."""

from __future__ import annotations

from tamias.errors import StateMigrationError
from tamias.state.snapshots import StateInfo


def check_restorable(saved: StateInfo | None, declared: StateInfo) -> None:
    """Refuse a declaration that the restored entries do not fit.

    Raises:
        StateMigrationError: naming the state and the difference.
    """
    if saved is None:
        return
    if saved.kind != declared.kind:
        raise StateMigrationError(
            f"state {declared.name!r} was saved as {saved.kind} state and is declared as {declared.kind} state; "
            f"declare it as {saved.kind}, or rename it to start it empty"
        )
    if saved.ttl != declared.ttl:
        had, has = ("with", "without") if saved.ttl else ("without", "with")
        raise StateMigrationError(
            f"state {declared.name!r} was saved {had} time-to-live and is declared {has} it; "
            f"declare it as it was saved, or rename it to start it empty"
        )
