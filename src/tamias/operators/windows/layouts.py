"""The forms in which windows are kept, and the refusal to restore one as another.

A window operator keeps panes, slices, sessions or contents with timers, as its assigner, function, trigger and evictor
allow. Changing those between a savepoint and a restore may change the form; what was saved would then be left lying, so
it is refused.
"""

from __future__ import annotations

from tamias.errors import StateMigrationError
from tamias.state.keyed_backend import KeyedStateBackend

PANES, SLICES, SESSIONS, GENERAL = "_window/panes", "_window/slices", "_window/sessions", "_window/contents"
IN_ROCKSDB = "_window/by-default"  # contents with timers of windows that on the heap are in one of the tight forms
_MEANING = {
    PANES: "tumbling or sliding windows with their default trigger and no evictor",
    SLICES: "sliding windows in slices, which several windows share, with their default trigger and no evictor",
    SESSIONS: "session windows with their default trigger and no evictor",
    IN_ROCKSDB: "tumbling, sliding or session windows with their default trigger and no evictor, in RocksDB",
    GENERAL: "windows with a trigger or an evictor of the program's, or of another assigner",
}


def check_layout(backend: KeyedStateBackend, mine: str, *understood: str) -> None:
    """Refuse restored windows that are kept in another form than the operator's own and those it understands besides.

    Raises:
        StateMigrationError: there are some.
    """
    for other, meaning in _MEANING.items():
        if other not in (mine, *understood) and backend.has_entries(other):
            raise StateMigrationError(
                f"the restored state is that of {meaning}; the job now has {_MEANING[mine]}. "
                "Restore with the windows as they were, or give the operator another uid to start it empty"
            )
