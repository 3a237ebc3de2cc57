"""Checks what a timestamp assigner returns: the class of every timestamp, and the size of the first ones.

The class is one comparison per record in the generated loop, or one pass over a run of a source. The size is looked at
by the object of this module, which is called in place of the assigner and then takes itself out of the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.functions.assigned_timestamps import assigner_text, unit_hint, whole_ms
from ekorn.functions.watermark_strategy import TimestampAssigner, assign_function

__all__ = ["TimestampCheck"]

_LOOKED_AT = 100  # how many timestamps of a subtask are looked at
_INTS = {int}


class TimestampCheck:
    """The check of one assigner in one subtask.

    Args:
        assigner: The assigner.
        hint: Shows a hint, given its subject and its text.

    Attributes:
        assign: The assigner's function: called with a record and its timestamp so far, returns the new one.
    """

    def __init__(self, assigner: TimestampAssigner, hint: Callable[[str, str], None]) -> None:
        self.assign = assign_function(assigner)
        self._name = assigner_text(self.assign)
        self._hint = hint
        self._left = _LOOKED_AT
        self._namespace: dict[str, Any] = {}
        self._alias = ""

    def in_code(self, namespace: dict[str, Any], alias: str) -> None:
        """Take note of the global under which the generated loop calls this object in place of the assigner."""
        self._namespace, self._alias = namespace, alias

    def __call__(self, record: Any, timestamp_before: int) -> Any:
        """Call the assigner, and look at the timestamp."""
        timestamp = self.assign(record, timestamp_before)
        self._look_at(timestamp, record)
        if self._left <= 0:
            self._namespace[self._alias] = self.assign
        return timestamp

    def whole(self, timestamp: Any, record: Any) -> int:
        """Return a timestamp that is not an int as an int, or refuse it."""
        return whole_ms(timestamp, record, self._name)

    def whole_run(self, timestamps: list[Any], records: list[Any]) -> list[int]:
        """Return the timestamps of a run of records, all of them ints."""
        if set(map(type, timestamps)) - _INTS:
            each = zip(timestamps, records, strict=True)
            timestamps = [time if time.__class__ is int else self.whole(time, record) for time, record in each]
        if self._left > 0 and timestamps:
            self._look_at(timestamps[0], records[0])
        return timestamps

    def _look_at(self, timestamp: Any, record: Any) -> None:
        self._left -= 1
        text = unit_hint(timestamp, record, self._name) if timestamp.__class__ is int else None
        if text is not None:
            self._left = 0
            self._hint("unit", text)
