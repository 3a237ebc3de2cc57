"""Shows hints about a program that can run and probably does not do what its author wanted, when it is executed."""

from __future__ import annotations

import logging

from ekorn.graph.stream_graph import StreamGraph
from ekorn.program.checks.changed_globals import changed_globals_text
from ekorn.program.checks.unread_results import unread_results_text

__all__ = ["show_program_hints"]

_log = logging.getLogger(__name__)


def show_program_hints(graph: StreamGraph) -> None:
    """Log a hint about results that go nowhere, and one about each global variable that a function changes."""
    unread = unread_results_text(graph)
    for text in [*([] if unread is None else [unread]), *changed_globals_text(graph.nodes())]:
        _log.warning("%s", text)
