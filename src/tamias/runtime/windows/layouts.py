"""The three forms in which windows are kept, and the refusal to restore one as another.

A window operator keeps panes, sessions or contents with timers, as its assigner, trigger and evictor allow. Changing
those between a savepoint and a restore may change the form; what was saved would then be left lying, so it is refused.
"""

from __future__ import annotations

from tamias.errors import StateMigrationError
from tamias.state.heap import HeapStateBackend
from tamias.state.keyed import KeyedStateBackend

PANES, SESSIONS, GENERAL = "_window/panes", "_window/sessions", "_window/contents"
_MEANING = {
    PANES: "tumbling or sliding windows with their default trigger and no evictor",
    SESSIONS: "session windows with their default trigger and no evictor",
    GENERAL: "windows with a trigger or an evictor of the program's, or of another assigner",
}


def check_layout(backend: KeyedStateBackend, mine: str) -> None:
    """Refuse restored windows that are kept in another form.

    Raises:
        StateMigrationError: there are some.
    """
    assert isinstance(backend, HeapStateBackend)
    for other, meaning in _MEANING.items():
        if other != mine and backend.has_entries(other):
            raise StateMigrationError(
                f"the restored state is that of {meaning}; the job now has {_MEANING[mine]}. "
                "Restore with the windows as they were, or give the operator another uid to start it empty"
            )
