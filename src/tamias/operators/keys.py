"""How a keyed operator finds the key of a record and makes it the current one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tamias.codegen.code_builder import CodeBuilder
from tamias.errors import InvalidKeyError, RecordTypeError
from tamias.functions.record_functions import FieldKeySelector, KeySelector
from tamias.graph.specs import KeySpec
from tamias.keygroups import state_key
from tamias.types.type_information import TypeInformation

if TYPE_CHECKING:
    from tamias.operators.operator import RuntimeOperator

_PLAIN = frozenset({str, int, bytes})  # types whose values are their own state key
_EXACT: dict[str, type] = {  # declared types, and the class of values that are as declared already
    "String": str,
    "Byte": int,
    "Short": int,
    "Integer": int,
    "Long": int,
    "BigInteger": int,
    "Double": float,
    "Boolean": bool,
}


def generate_key(code: CodeBuilder, operator: RuntimeOperator, value: str, input_index: int = 0) -> None:
    """Generate the statements that make a record's key the current key; nothing for an operator without keys."""
    spec = operator.operator.key_of(input_index)
    if spec is None or operator.backend is None:
        return
    key = generate_key_of(code, spec, value)
    plain, wrap, cell = (
        code.bind(_PLAIN, "plain"),
        code.bind(state_key, "state_key"),
        code.bind(operator.backend.cell, "cell"),
    )
    code.line(f"{cell}[0] = {key} if {key}.__class__ in {plain} else {wrap}({key})")
    _generate_cleanups(code, operator)


def generate_state_key(code: CodeBuilder, operator: RuntimeOperator, value: str) -> str:
    """Generate the statements that find a record's key as tables hold it; answers the variable that holds it."""
    spec = operator.operator.key
    assert spec is not None, "the stream graph puts this operator on keyed streams only"
    key = generate_key_of(code, spec, value)
    with code.block(f"if {key}.__class__ not in {code.bind(_PLAIN, 'plain')}:"):
        code.line(f"{key} = {code.bind(state_key, 'state_key')}({key})")
    _generate_cleanups(code, operator)
    return key


def _generate_cleanups(code: CodeBuilder, operator: RuntimeOperator) -> None:
    """Generate what states that expire want called with every record; nothing if no state wants anything.

    States are asked for in `open`, before the chain is written. One that is asked for later than that is cleaned up
    when it is accessed and when timers and windows fire.
    """
    assert operator.backend is not None
    for clean_up in operator.backend.every_record:
        code.line(f"{code.bind(clean_up, 'clean_up')}()")


def generate_key_of(code: CodeBuilder, spec: KeySpec, value: str) -> str:
    """Generate the statements that find the key of the record in a variable; answers the variable that holds it."""
    key, selector = code.fresh("k"), spec.selector
    if isinstance(selector, FieldKeySelector) and all(type(f) is int for f in selector.fields):
        get = code.bind(selector.get_key, "key")
        fields = "".join(f"{value}[{f}], " for f in selector.fields)
        code.line(f"{key} = ({fields}) if {value}.__class__ is tuple else {get}({value})")
    else:
        code.line(f"{key} = {code.bind(_select(selector), 'key')}({value})")
    if spec.type_info is not None:
        convert, exact = code.bind(_converter(spec.type_info), "as_declared"), _EXACT.get(str(spec.type_info))
        if exact is None:
            code.line(f"{key} = {convert}({key})")
        else:
            with code.block(f"if {key}.__class__ is not {exact.__name__}:"):
                code.line(f"{key} = {convert}({key})")
    return key


def key_function(spec: KeySpec) -> Callable[[Any], Any]:
    """The callable that finds the key of a record."""
    select = _select(spec.selector)
    if spec.type_info is None:
        return select
    convert = _converter(spec.type_info)
    return lambda value: convert(select(value))


def _select(selector: Any) -> Callable[[Any], Any]:
    found: Callable[[Any], Any] = selector.get_key if isinstance(selector, KeySelector) else selector
    return found


def _converter(type_info: TypeInformation) -> Callable[[Any], Any]:
    """Makes keys what their declared type says: with DOUBLE, 1 and True are the key 1.0."""

    def convert(key: Any) -> Any:
        try:
            return type_info.conform([key])[0]
        except RecordTypeError as misfit:
            raise InvalidKeyError(
                "", misfit.value_preview, f"its declared type is {type_info}: {misfit.reason}"
            ) from None

    return convert
