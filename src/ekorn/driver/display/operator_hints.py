"""Shows hints about a program that runs and probably does not do what its author wanted: once for each operator."""

from __future__ import annotations

import logging

from ekorn.slot_protocol.slot_events import OperatorHint

__all__ = ["OperatorHints"]

_log = logging.getLogger(__name__)


class OperatorHints:
    """The hints of one job. All subtasks of an operator may give the same hint, in every attempt."""

    def __init__(self) -> None:
        self._shown: set[tuple[str, str]] = set()

    def show(self, hint: OperatorHint) -> None:
        """Log a hint, unless the operator has given one about its subject before."""
        subject = hint.operator_id, hint.about
        if subject not in self._shown:
            self._shown.add(subject)
            _log.warning("operator %r: %s", hint.operator_name, hint.text)
