"""Finds global variables that functions of the program change.

Each slot is a process with its own copy of the program's modules, so a list that a function appends to stays empty in
the program. The code is read, never run: what is found are assignments after a `global` statement, and changes of
lists, dictionaries, sets, deques and byte arrays that are values of global variables.
"""

from __future__ import annotations

import dis
from collections import deque
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import NamedTuple

from ekorn.graph.stream_graph import Node
from ekorn.program.checks.user_code import UserCode, all_code, user_code

__all__ = ["changed_globals_text"]

_CONTAINERS = (list, dict, set, deque, bytearray)
_CHANGING = frozenset(
    {"add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft", "insert"}
    | {"intersection_update", "pop", "popitem", "popleft", "remove", "reverse", "rotate", "setdefault", "sort"}
    | {"subtract", "symmetric_difference_update", "update"}
)
_METHOD_LOADS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_CONTAINER_AT = {"STORE_SUBSCR": -2, "DELETE_SUBSCR": -2, "STORE_SLICE": -3}  # where the container is on the stack


class _Change(NamedTuple):
    variable: str
    line: int


def changed_globals_text(nodes: Iterable[Node]) -> list[str]:
    """Return a hint for each global variable that the functions of operators change."""
    told: dict[str, str] = {}
    for node in nodes:
        for function in user_code(node):
            for change in _changes(function):
                told.setdefault(change.variable, _text(function, change))
    return list(told.values())


def _text(function: UserCode, change: _Change) -> str:
    file_name = function.code.co_filename.replace("\\", "/").rpartition("/")[2]
    return (
        f"{function.name} ({file_name}:{change.line}) changes the global variable {change.variable!r}. Each slot has "
        "its own copy of the variable, and the program does not see the change: keep results in state, in an "
        "accumulator or in a sink"
    )


def _changes(function: UserCode) -> Iterator[_Change]:
    for code in all_code(function.code):
        yield from _assignments(code, function)
        yield from _changed_containers(code, function)


def _assignments(code: CodeType, function: UserCode) -> Iterator[_Change]:
    before = ""
    for step in dis.get_instructions(code):
        if step.opname in {"STORE_GLOBAL", "DELETE_GLOBAL"} and not before.startswith("IMPORT_"):
            variable = str(step.argval)
            if not _is_made_when_needed(variable, code, function):
                yield _Change(variable, _line(step, code))
        before = step.opname


def _is_made_when_needed(variable: str, code: CodeType, function: UserCode) -> bool:
    """Return whether a function replaces None once, as programs do that open one connection for each process."""
    if function.variables.get(variable, code) is not None:
        return False
    loaded = False
    for step in dis.get_instructions(code):
        if loaded and (step.opname.endswith("NONE") or step.argval is None or "JUMP_IF" in step.opname):
            return True
        loaded = step.opname == "LOAD_GLOBAL" and step.argval == variable
    return False


def _changed_containers(code: CodeType, function: UserCode) -> Iterator[_Change]:
    """Follow the values of global variables on the stack. At jumps all are forgotten: a change is rather missed."""
    stack: list[str | None] = []  # the global variable that a value is, or is a part of
    for step in dis.get_instructions(code):
        name = step.opname
        if step.is_jump_target:
            stack.clear()
        if name in _METHOD_LOADS:
            if _at(stack, -1) is not None and step.argval in _CHANGING:
                yield _Change(str(stack[-1]), _line(step, code))
            stack[-1:] = [None]
        elif name in _CONTAINER_AT:
            variable = _at(stack, _CONTAINER_AT[name])
            if variable is not None:
                yield _Change(variable, _line(step, code))
        _apply(step, stack, function)


def _apply(step: dis.Instruction, stack: list[str | None], function: UserCode) -> None:
    """Apply an instruction to the stack. What it puts there is unknown, except for the few that are followed."""
    name, count = step.opname, step.arg or 0
    if name == "COPY":
        stack.append(_at(stack, -count))
        return
    if name == "SWAP":
        if len(stack) < count:
            stack.clear()
        else:
            stack[-1], stack[-count] = stack[-count], stack[-1]
        return
    if step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
        stack.clear()
        return
    effect = dis.stack_effect(step.opcode, step.arg, jump=False)
    part_of = _at(stack, -2) if name == "BINARY_SUBSCR" or (name == "BINARY_OP" and step.argrepr == "[]") else None
    if effect < 0:
        del stack[effect:]
    else:
        stack.extend([None] * effect)
    if stack:
        stack[-1] = part_of
    if name == "LOAD_GLOBAL" and isinstance(function.variables.get(str(step.argval)), _CONTAINERS):
        stack[-1] = str(step.argval)


def _at(stack: list[str | None], index: int) -> str | None:
    return stack[index] if len(stack) >= -index else None


def _line(step: dis.Instruction, code: CodeType) -> int:
    return (step.positions.lineno if step.positions is not None else None) or code.co_firstlineno
