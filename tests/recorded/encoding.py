"""Records as exact, readable text that `decode` reads back.

The text is a Python expression that shows every type: two records have the same text exactly if they have the same type
and value all the way down. `1`, `1.0` and `True` differ, a tuple and a list differ, and a row shows its kind and its
field names. This module imports neither PyFlink nor Ekorn: it recognises rows and instants by their shape, so the
objects of both packages have the same text.
"""

import datetime
import re
from decimal import Decimal
from typing import Any

_PLAIN = (
    type(None),
    bool,
    int,
    str,
    bytes,
    bytearray,
    Decimal,
    datetime.date,
    datetime.time,
    datetime.datetime,
    datetime.timedelta,
)


def encode(value: Any) -> str:
    """Return the text of one record.

    >>> encode((1, 1.0, True, None, [b"x"], {"k": float("nan")}))
    "(1, 1.0, True, None, [b'x'], {'k': float('nan')})"
    """
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if kind is float:
        text = repr(value)
        return f"float({text!r})" if text in ("nan", "inf", "-inf") else text
    if kind is tuple:
        inner = ", ".join(map(encode, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if kind is list:
        return f"[{', '.join(map(encode, value))}]"
    if kind is dict:
        return "{" + ", ".join(f"{encode(k)}: {encode(v)}" for k, v in value.items()) + "}"
    if kind in (set, frozenset):
        return f"{kind.__name__}([{', '.join(sorted(map(encode, value)))}])"
    if kind.__name__ == "Row":
        return _encode_row(value)
    if kind.__name__ == "Instant":
        return f"Instant({value.seconds!r}, {value.nanos!r})"
    return f"Other({kind.__name__!r}, {without_addresses(repr(value))!r})"


def _encode_row(row: Any) -> str:
    """Return `Row('+I', [1, 'a'])`, or with names `Row('+I', [1, 'a'], ['f0', 'f1'])`."""
    values = f"[{', '.join(map(encode, row))}]"
    names = getattr(row, "_fields", None)
    kind = str(row.get_row_kind())
    return f"Row({kind!r}, {values})" if names is None else f"Row({kind!r}, {values}, {list(names)!r})"


def decode(text: str, common: Any) -> Any:
    """Return the record of a text; `common` is the `common` module of the package, with its Row and Instant."""

    def row(kind: str, values: list[Any], names: list[str] | None = None) -> Any:
        made = common.Row.of_kind(next(k for k in common.RowKind if str(k) == kind), *values)
        if names is not None:
            made.set_field_names(names)
        return made

    names = {
        "__builtins__": {},
        "float": float,
        "bytearray": bytearray,
        "set": set,
        "frozenset": frozenset,
        "Decimal": Decimal,
        "datetime": datetime,
        "Row": row,
        "Instant": common.Instant,
    }
    return eval(text, names)


def without_addresses(text: str) -> str:
    """Remove the addresses of Python and Java objects, which differ in every run."""
    return re.sub(r"0x[0-9a-fA-F]+|(\[B@)[0-9a-f]+", r"\1…", text)
