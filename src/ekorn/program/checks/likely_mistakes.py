"""Programs that run and rarely do what their author wanted: a warning at the line of the call."""

from __future__ import annotations

import dis
import inspect
from types import CodeType, FunctionType
from typing import Any

from ekorn.errors import warn
from ekorn.functions.record_functions import Function
from ekorn.graph.plan import function_text

__all__ = ["warn_if_nothing_is_returned"]


def warn_if_nothing_is_returned(call: str, function: Any, method: str, result: str) -> None:
    """Warn about a function whose result is used and that has no `return` with a value."""
    code = getattr(function, method, None) if isinstance(function, Function) else function
    plain = code.__func__ if inspect.ismethod(code) else code
    if isinstance(plain, FunctionType) and plain.__name__ != "<lambda>" and _returns_only_none(plain.__code__):
        warn(f"{call}(): {function_text(function)} has no return statement with a value, so {result}")


def _returns_only_none(code: CodeType) -> bool:
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return False
    returns = 0
    before: dis.Instruction | None = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "RETURN_CONST":
            returns += 1
            if instruction.argval is not None:
                return False
        elif instruction.opname == "RETURN_VALUE":
            returns += 1
            is_none = before is not None and before.opname == "LOAD_CONST" and before.argval is None
            if not is_none or instruction.is_jump_target:
                return False
        before = instruction
    return returns > 0  # a function that always raises has no return at all
