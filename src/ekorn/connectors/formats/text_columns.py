"""Columns of texts as columns of values, by the batch: what JSON and CSV have in common.

A conversion raises a ValueError, also as an error of Arrow, for texts of another form than the usual one. Such texts
are left to the reader of rows, which accepts more forms, and whose errors name the text.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CLOCK", "DAY", "ConvertTexts", "TextsOfForm", "TimesOfTexts", "bytes_of_texts"]

ConvertTexts = Callable[["pa.Array"], "pa.Array"]

DAY = r"(?:[1-9]\d{3}|0[1-9]\d\d|00[1-9]\d|000[1-9])-\d\d-\d\d"  # Python has no year 0
CLOCK = r"\d\d:\d\d(?::\d\d(?:\.\d{1,%d})?)?"


class TextsOfForm:
    """Casts texts of one form."""

    def __init__(self, form: str, *types: pa.DataType) -> None:
        """Set the form, as a regular expression, and the types that the texts are cast to, one after the other."""
        self._form = form
        self._types = types

    def __call__(self, texts: pa.Array) -> pa.Array:
        check_form(texts, self._form)
        array = texts
        for number, each in enumerate(self._types):
            array = array.cast(each, safe=not number)
        return array


class TimesOfTexts:
    """Converts texts of one form to dates or times."""

    def __init__(self, form: str, arrow_type: pa.DataType, day: str = "") -> None:
        self._form = form
        self._type = arrow_type
        self._day = day  # of times, which Arrow reads only in timestamps

    def __call__(self, texts: pa.Array) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        check_form(texts, self._form)
        if pa.types.is_date(self._type):
            return texts.cast(self._type)
        texts = pc.utf8_rtrim(texts, "Z")
        if self._day:
            texts = pc.binary_join_element_wise(pa.scalar(self._day), texts, "")
        unit = "ms" if self._type.bit_width == 32 else getattr(self._type, "unit", "us")
        return texts.cast(pa.timestamp(unit)).cast(self._type)


def check_form(texts: pa.Array, form: str) -> None:
    """Raise a ValueError unless all texts have a form."""
    import pyarrow.compute as pc

    if not pc.all(pc.match_substring_regex(texts, form), min_count=0).as_py():
        raise ValueError("another form")


def bytes_of_texts(texts: pa.Array) -> pa.Array:
    """Return the bytes of texts in base64."""
    import pyarrow as pa

    decode = base64.b64decode
    return pa.array([None if text is None else decode(text, validate=True) for text in texts.to_pylist()], pa.binary())
