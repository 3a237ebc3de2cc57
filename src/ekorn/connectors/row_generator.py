"""`RowGenerator`: rows by a schema, with a rule for each field, for `DataGeneratorSource`.

A value depends on the seed, the field and the record's number only. A job that reads a number again after a failure
gets the same row.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ekorn.connectors.datagen import GeneratorFunction
from ekorn.keygroups import stable_hash
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.factory import Types
from ekorn.types.row import Row, make_row
from ekorn.types.type_information import TypeInformation

__all__ = ["Field", "Fields", "RowGenerator"]

_MASK = 2**64 - 1
_LETTERS = string.ascii_lowercase + string.digits

Rule = Callable[[int, int], Any]
"""A value from a record's number and from 64 random bits."""


@dataclass(frozen=True)
class Field:
    """The rule of one field; made by `Fields`."""

    type_info: TypeInformation
    rule: Rule
    null_rate: float = 0.0

    def with_null_rate(self, null_rate: float) -> Field:
        """Return this field with a share of nulls, from 0 to 1."""
        if not 0 <= null_rate <= 1:
            raise ValueError(f"with_null_rate() takes a fraction from 0 to 1, got {null_rate!r}")
        return replace(self, null_rate=null_rate)


class Fields:
    """The rules of fields: sequences, and values by chance."""

    @staticmethod
    def sequence(start: int = 0, step: int = 1) -> Field:
        """Count from `start` by `step`."""
        return Field(Types.LONG(), lambda number, bits: start + number * step)

    @staticmethod
    def time_sequence(start: datetime, step: timedelta) -> Field:
        """Count time from `start` by `step`."""
        return Field(Types.SQL_TIMESTAMP(), lambda number, bits: start + number * step)

    @staticmethod
    def random_int(low: int, high: int) -> Field:
        """Choose a whole number from `low` to `high`, both included."""
        span = _checked_span("random_int", low, high) + 1
        return Field(Types.LONG(), lambda number, bits: low + bits % span)

    @staticmethod
    def random_double(low: float = 0.0, high: float = 1.0) -> Field:
        """Choose a number from `low` up to `high`, which is not included."""
        span = _checked_span("random_double", low, high)
        return Field(Types.DOUBLE(), lambda number, bits: low + (bits >> 11) * 2.0**-53 * span)

    @staticmethod
    def random_boolean() -> Field:
        """Choose between true and false."""
        return Field(Types.BOOLEAN(), lambda number, bits: bool(bits & 1))

    @staticmethod
    def random_string(length: int, alphabet: str = _LETTERS) -> Field:
        """Choose text of a length, from the characters of an alphabet."""
        if isinstance(length, bool) or not isinstance(length, int) or length < 0:
            raise ValueError(f"random_string() takes a length of 0 or more, got {length!r}")
        if not alphabet:
            raise ValueError("random_string() takes an alphabet of at least one character")
        size, per_word = len(alphabet), max(1, int(64 // math.log2(max(2, len(alphabet))))) - 1 or 1

        def text(number: int, bits: int) -> str:
            letters, word, left = [], 0, 0
            for _ in range(length):
                if left == 0:
                    word = bits = mixed(bits)
                    left = per_word
                word, letter = divmod(word, size)
                letters.append(alphabet[letter])
                left -= 1
            return "".join(letters)

        return Field(Types.STRING(), text)

    @staticmethod
    def choice(values: Sequence[Any], type_info: TypeInformation | None = None) -> Field:
        """Choose one of the values; they are text unless their type is given."""
        given = list(values)
        if not given:
            raise ValueError("choice() takes at least one value")
        return Field(type_info or Types.STRING(), lambda number, bits: given[bits % len(given)])

    @staticmethod
    def of(function: Callable[[int], Any], type_info: TypeInformation) -> Field:
        """Compute the value from the record's number."""
        return Field(type_info, lambda number, bits: function(number))


class RowGenerator(GeneratorFunction[Row]):
    """Generates rows with a rule for each field.

    >>> orders = RowGenerator({"id": Fields.sequence(1), "item": Fields.choice(["tea", "nuts"])}, seed=7)
    >>> orders.map(0), orders.map(1)
    (Row(id=1, item='nuts'), Row(id=2, item='tea'))

    Pass it to a source: `DataGeneratorSource(orders, 1000)`.
    """

    def __init__(self, fields: Mapping[str, Field], *, seed: int = 0) -> None:
        """Create a generator of rows with these fields, by name, in their order."""
        wrong = [name for name, field in fields.items() if not isinstance(field, Field)]
        if wrong or not fields:
            raise TypeError(f"RowGenerator() takes a dict of fields made by Fields, got {dict(fields)!r}")
        self._names = list(fields)
        self._fields = list(fields.values())
        self._seeds = [stable_hash((seed, name)) for name in self._names]

    def get_produced_type(self) -> RowTypeInfo:
        """Return rows with the names and types of the fields."""
        return Types.ROW_NAMED(self._names, [field.type_info for field in self._fields])

    def map(self, value: int) -> Row:  # hot
        """Return the row of a number."""
        values = []
        for field, seed in zip(self._fields, self._seeds, strict=True):
            bits = mixed(seed ^ mixed(value))
            is_null = field.null_rate and (mixed(bits + 1) >> 11) * 2.0**-53 < field.null_rate
            values.append(None if is_null else field.rule(value, bits))
        return make_row(values, self._names)


def mixed(number: int) -> int:
    """Return 64 bits that look random but depend on the number only (SplitMix64)."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


def _checked_span(call: str, low: Any, high: Any) -> Any:
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in (low, high)) or low > high:
        raise ValueError(f"{call}() takes two numbers, the lower one first, got {low!r} and {high!r}")
    return high - low
