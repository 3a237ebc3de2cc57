"""Finding the key of a record: as generated statements, and as a callable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.codegen.code_builder import CodeBuilder
from ekorn.errors import InvalidKeyError, RecordTypeError
from ekorn.functions.record_functions import FieldKeySelector, KeySelector
from ekorn.graph.specs import KeySpec
from ekorn.types.type_information import TypeInformation

_CLASS_OF_DECLARED: dict[str, type] = {  # a key of this class already conforms to the declared type
    "String": str,
    "Byte": int,
    "Short": int,
    "Integer": int,
    "Long": int,
    "BigInteger": int,
    "Double": float,
    "Boolean": bool,
}


def generate_key_of(code: CodeBuilder, spec: KeySpec, value: str) -> str:
    """Generate the statements that find the key of the record in variable `value`; return the key's variable."""
    key, selector = code.fresh("k"), spec.selector
    if isinstance(selector, FieldKeySelector) and all(type(f) is int for f in selector.fields):
        get = code.bind(selector.get_key, "key")
        fields = "".join(f"{value}[{f}], " for f in selector.fields)
        code.line(f"{key} = ({fields}) if {value}.__class__ is tuple else {get}({value})")
    else:
        code.line(f"{key} = {code.bind(_select(selector), 'key')}({value})")
    if spec.type_info is not None:
        convert = code.bind(_converter(spec.type_info), "as_declared")
        exact = _CLASS_OF_DECLARED.get(str(spec.type_info))
        if exact is None:
            code.line(f"{key} = {convert}({key})")
        else:
            with code.block(f"if {key}.__class__ is not {exact.__name__}:"):
                code.line(f"{key} = {convert}({key})")
    return key


def key_function(spec: KeySpec) -> Callable[[Any], Any]:
    """Return the callable that finds the key of a record."""
    select = _select(spec.selector)
    if spec.type_info is None:
        return select
    convert = _converter(spec.type_info)
    return lambda value: convert(select(value))


def _select(selector: Any) -> Callable[[Any], Any]:
    found: Callable[[Any], Any] = selector.get_key if isinstance(selector, KeySelector) else selector
    return found


def _converter(type_info: TypeInformation) -> Callable[[Any], Any]:
    """Return a function that converts a key to its declared type: declared as DOUBLE, 1 and True are the key 1.0."""

    def convert(key: Any) -> Any:
        try:
            return type_info.conform([key])[0]
        except RecordTypeError as misfit:
            raise InvalidKeyError(
                "", misfit.value_preview, f"its declared type is {type_info}: {misfit.reason}"
            ) from None

    return convert
