"""Texts of columns that JSON and CSV have in common, made by Arrow: the texts that `text_writer` makes of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NumberTexts", "joined_texts", "moment_texts", "time_texts"]


class NumberTexts:
    """Writes floating-point numbers as the JVM does: as decimals from 0.001 up to 10,000,000, else with an exponent."""

    def __init__(self, one_by_one: Callable[[pa.Array], pa.Array]) -> None:
        self._one_by_one = one_by_one

    def __call__(self, array: pa.Array) -> pa.Array:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        values = array.fill_null(1.0).to_numpy(zero_copy_only=False)
        size = np.abs(values)
        plain = (size >= 1e-3) & (size < 1e7)
        if not plain.all():
            others = pa.array(~plain)
            kept = pc.if_else(others, 1.0, array.cast(pa.float64())).cast(array.type)
            return pc.replace_with_mask(self._plain(kept), others, self._one_by_one(array.filter(others)))
        return self._plain(array)

    @staticmethod
    def _plain(array: pa.Array) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = array.cast(pa.string())
        whole = pc.equal(pc.floor(array), array)
        if not pc.any(whole).as_py():
            return texts
        return pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)


def time_texts(array: pa.Array) -> pa.Array:
    """Return times of the day without the zeros at the end of a fraction."""
    import pyarrow as pa

    return _short_fractions(array.cast(pa.string()))


def moment_texts(array: pa.Array, between: str) -> pa.Array:
    """Return timestamps, in UTC if they have a zone, with a text between the day and the time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = array.cast(pa.timestamp(array.type.unit)).cast(pa.string())
    if between != " ":
        texts = pc.replace_substring(texts, " ", between)
    return _short_fractions(texts)


def _short_fractions(texts: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.replace_substring_regex(texts, r"\.?0+$", "")


def joined_texts(texts: pa.Array) -> memoryview:
    """Return the bytes of texts, none of which is null, one behind the other."""
    import numpy as np

    _, offsets, content = texts.buffers()
    if content is None or not len(texts):
        return memoryview(b"")
    bounds = np.frombuffer(offsets, np.int32, texts.offset + len(texts) + 1)
    return memoryview(content)[bounds[texts.offset] : bounds[-1]]
