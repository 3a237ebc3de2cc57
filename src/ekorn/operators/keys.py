"""Finds the key of a record and makes it the current key of a keyed operator."""

from __future__ import annotations

from ekorn.codegen.code_builder import CodeBuilder
from ekorn.codegen.key_code import generate_key_of
from ekorn.keygroups import state_key
from ekorn.operators.operator import RuntimeOperator

_OWN_STATE_KEY = frozenset({str, int, bytes})  # a key of these types is its own state key


def generate_key(code: CodeBuilder, operator: RuntimeOperator, value: str, input_index: int = 0) -> None:
    """Generate the statements that make a record's key the current key; none for an operator without keys."""
    spec = operator.operator.key_of(input_index)
    if spec is None or operator.backend is None:
        return
    key = generate_key_of(code, spec, value)
    plain = code.bind(_OWN_STATE_KEY, "plain")
    wrap = code.bind(state_key, "state_key")
    cell = code.bind(operator.backend.cell, "cell")
    code.line(f"{cell}[0] = {key} if {key}.__class__ in {plain} else {wrap}({key})")
    _generate_cleanups(code, operator)


def generate_state_key(code: CodeBuilder, operator: RuntimeOperator, value: str) -> str:
    """Generate the statements that find a record's key in the form state tables hold; return the key's variable."""
    spec = operator.operator.key
    assert spec is not None, "the stream graph puts this operator on keyed streams only"
    key = generate_key_of(code, spec, value)
    with code.block(f"if {key}.__class__ not in {code.bind(_OWN_STATE_KEY, 'plain')}:"):
        code.line(f"{key} = {code.bind(state_key, 'state_key')}({key})")
    _generate_cleanups(code, operator)
    return key


def _generate_cleanups(code: CodeBuilder, operator: RuntimeOperator) -> None:
    """Generate the calls that expiring states want with every record; none if no state expires.

    A function registers its states in `open`, before the chain is compiled. A state registered later is cleaned up
    when it is accessed, and when timers and windows fire.
    """
    assert operator.backend is not None
    for clean_up in operator.backend.every_record:
        code.line(f"{code.bind(clean_up, 'clean_up')}()")
