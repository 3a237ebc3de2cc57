"""Which timer or window fires in a frame of a traceback, so that an error of the user's function names it.

Timers and windows belong to no record. Their key and their time are read from the frames of the operators only after an
exception, so they cost nothing while nothing fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any

from ekorn.errors import preview
from ekorn.functions.timer_service import TimeDomain
from ekorn.operators.process_operators import KeyedProcessOperator
from ekorn.operators.windows.triggered_windows import TriggeredWindowOperator
from ekorn.operators.windows.window_output import WindowOutput
from ekorn.types.time_bounds import MAX_TIMESTAMP

__all__ = ["firing_text"]


def firing_text(frame: FrameType) -> str | None:
    """Return what fires in a frame, as text that ends before the operator; None if the frame fires nothing."""
    describe = _FIRING.get(frame.f_code)
    return None if describe is None else describe(frame.f_locals)


def _timer(variables: Mapping[str, Any]) -> str:
    domain = "event" if variables["domain"] is TimeDomain.EVENT_TIME else "processing"
    return f"the {domain}-time timer {_at(variables['time_ms'])} of key {preview(variables['key'])} in"


def _window_timer(variables: Mapping[str, Any]) -> str | None:
    if "window" not in variables:
        return None
    return f"{preview(variables['window'])} of key {preview(variables['entry'][0])} in"


def _window(variables: Mapping[str, Any]) -> str:
    return f"{preview(variables['window'])} of key {preview(variables['key'])} in"


def _at(time_ms: int) -> str:
    return "at the end of time" if time_ms >= MAX_TIMESTAMP else f"at {time_ms} ms"


_FIRING: dict[CodeType, Callable[[Mapping[str, Any]], str | None]] = {
    KeyedProcessOperator._fire.__code__: _timer,
    TriggeredWindowOperator._on_timer.__code__: _window_timer,
    WindowOutput.fire.__code__: _window,
}
