"""The libraries in which batch functions compute: each with its kind of table, made from Arrow and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from ekorn.errors import InvalidProgramError, preview
from ekorn.extras import load

__all__ = ["Frames", "frames_of"]


class Frames(ABC):
    """The tables of one library."""

    name: str

    @abstractmethod
    def given(self, data: pa.RecordBatch) -> Any:
        """Return a batch as the library's table."""

    def parts(self, result: Any) -> Iterator[pa.RecordBatch]:
        """Yield the batches of what a function returned: a table, an iterable of tables, or None for no rows.

        Raises:
            InvalidProgramError: It is something else.
        """
        if result is None:
            return
        taken = self._taken(result)
        if taken is not None:
            yield from taken
            return
        if isinstance(result, Iterable) and not isinstance(result, str | bytes | dict):
            for each in result:
                taken = self._taken(each)
                if taken is None:
                    raise self._refused(each)
                yield from taken
            return
        raise self._refused(result)

    @abstractmethod
    def _taken(self, result: Any) -> list[pa.RecordBatch] | None:
        """Return the batches of a table; None if it is not a table of the library."""

    def _refused(self, result: Any) -> InvalidProgramError:
        return InvalidProgramError(
            f"a batch function returned {preview(result, 80)} ({type(result).__name__}), where {self.name} is "
            "expected; return that, an iterable of them, or None for no rows"
        )


class ArrowFrames(Frames):
    name = "a RecordBatch or Table of PyArrow"

    def given(self, data: pa.RecordBatch) -> Any:
        return data

    def _taken(self, result: Any) -> list[pa.RecordBatch] | None:
        if isinstance(result, pa.RecordBatch):
            return [result]
        return list(result.to_batches()) if isinstance(result, pa.Table) else None


class PandasFrames(Frames):
    name = "a DataFrame of pandas"

    def __init__(self) -> None:
        self._pandas = load("pandas", "a batch function that takes a DataFrame of pandas")

    def given(self, data: pa.RecordBatch) -> Any:
        return data.to_pandas()

    def _taken(self, result: Any) -> list[pa.RecordBatch] | None:
        if not isinstance(result, self._pandas.DataFrame):
            return None
        return list(pa.Table.from_pandas(result, preserve_index=False).combine_chunks().to_batches())


class PolarsFrames(Frames):
    name = "a DataFrame of polars"

    def __init__(self) -> None:
        self._polars = load("polars", "a batch function that takes a DataFrame of polars")

    def given(self, data: pa.RecordBatch) -> Any:
        return self._polars.from_arrow(data)

    def _taken(self, result: Any) -> list[pa.RecordBatch] | None:
        if not isinstance(result, self._polars.DataFrame):
            return None
        return list(result.to_arrow().combine_chunks().to_batches())


class NumpyFrames(Frames):
    name = "a dict of NumPy arrays by column"

    def given(self, data: pa.RecordBatch) -> Any:
        return {name: data.column(name).to_numpy(zero_copy_only=False) for name in data.schema.names}

    def _taken(self, result: Any) -> list[pa.RecordBatch] | None:
        if not isinstance(result, dict):
            return None
        return [pa.record_batch({name: pa.array(values) for name, values in result.items()})]


def frames_of(library: str) -> Frames:
    """Return the tables of a library: `arrow`, `pandas`, `polars` or `numpy`."""
    return _FRAMES[library]()


_FRAMES: dict[str, Callable[[], Frames]] = {
    "arrow": ArrowFrames,
    "pandas": PandasFrames,
    "polars": PolarsFrames,
    "numpy": NumpyFrames,
}
