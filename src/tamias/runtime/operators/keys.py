"""How a keyed operator finds the key of a record and makes it the current one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamias.contracts.functions import FieldKeySelector, KeySelector
from tamias.graph.specs import KeySpec
from tamias.keygroups import state_key
from tamias.runtime.code import Code

if TYPE_CHECKING:
    from tamias.runtime.operators.base import RuntimeOperator

_PLAIN = frozenset({str, int, bytes})  # types whose values are their own state key


def write_key(code: Code, operator: RuntimeOperator, value: str) -> None:
    """Write the statements that make a record's key the current key; nothing for an operator without keys."""
    spec = operator.operator.key
    if spec is None or operator.backend is None:
        return
    key = code.fresh("k")
    code.line(f"{key} = {key_expression(code, spec, value)}")
    plain, wrap, cell = code.bind(_PLAIN, "plain"), code.bind(state_key, "state_key"), code.bind(operator.backend.cell, "cell")
    code.line(f"{cell}[0] = {key} if {key}.__class__ in {plain} else {wrap}({key})")


def key_expression(code: Code, spec: KeySpec, value: str) -> str:
    """An expression for the key of the record in a variable."""
    selector = spec.selector
    if isinstance(selector, FieldKeySelector) and all(type(f) is int for f in selector.fields):
        get = code.bind(selector.get_key, "key")
        fields = "".join(f"{value}[{f}], " for f in selector.fields)
        return f"({fields}) if {value}.__class__ is tuple else {get}({value})"
    return f"{code.bind(key_function(selector), 'key')}({value})"


def key_function(selector: Any) -> Any:
    """The callable that finds a key."""
    return selector.get_key if isinstance(selector, KeySelector) else selector
