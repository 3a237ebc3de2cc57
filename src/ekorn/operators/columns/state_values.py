"""Values between states, which keep Python objects, and the vectors that batch functions read and write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.arrow_columns import ArrowColumn, arrow_column, nullable
from ekorn.errors import ConfigurationError, StateError
from ekorn.state.value_vectors import values_array
from ekorn.types.data_type_info import data_type_of
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

__all__ = ["BOUNDS", "arrow_type_of", "dtype_of", "list_array", "objects_in", "vector_of"]

_DTYPES: dict[TypeInformation, Any] = {
    Types.LONG(): np.int64,
    Types.INT(): np.int64,
    Types.SHORT(): np.int64,
    Types.BYTE(): np.int64,
    Types.DOUBLE(): np.float64,
    Types.FLOAT(): np.float64,
    Types.BOOLEAN(): np.bool_,
}
BOUNDS: dict[TypeInformation, tuple[int, int]] = {
    Types.INT(): (-(1 << 31), (1 << 31) - 1),
    Types.SHORT(): (-(1 << 15), (1 << 15) - 1),
    Types.BYTE(): (-(1 << 7), (1 << 7) - 1),
}


def dtype_of(type_info: TypeInformation | None) -> Any:
    """Return the NumPy type of the vectors of a state; that of objects if its values are no numbers."""
    return np.dtype(_DTYPES.get(type_info, np.object_) if type_info is not None else np.object_)


def objects_in(values: Any, count: int, each: str) -> list[Any]:
    """Return values as Python objects: of an array, of a list, or one value for all.

    Raises:
        ValueError: There is another number of them.
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        found: list[Any] = values.to_pylist()
    elif isinstance(values, np.ndarray):
        found = values.tolist()
    elif isinstance(values, list | tuple):
        found = list(values)
    else:
        return [values] * count
    if len(found) != count:
        raise ValueError(f"expected a value for each {each}, which are {count}, and got {len(found)}")
    return found


def vector_of(
    values: Any, count: int, state: str, type_info: TypeInformation | None
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return new values of a state as a vector, and where there is one.

    Raises:
        StateError: The state cannot hold a value.
        ValueError: There is another number of them.
    """
    dtype = dtype_of(type_info)
    if dtype.kind == "O":
        return values_array(objects_in(values, count, "key"), state, dtype)
    valid = np.ones(count, dtype=np.bool_)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, list | tuple):
        values = pa.array(values)
    if values is None:
        return np.zeros(count, dtype=dtype), ~valid
    if isinstance(values, pa.Array):
        if values.null_count:
            valid = values.is_valid().to_numpy(zero_copy_only=False)
            values = pa.array(np.zeros(len(values), dtype)) if pa.types.is_null(values.type) else values.fill_null(0)
        values = values.to_numpy(zero_copy_only=False)
    vector = np.asarray(values)
    if vector.ndim == 0:
        vector = np.full(count, vector)
    if len(vector) != count:
        raise ValueError(f"expected a value for each key, which are {count}, and got {len(vector)}")
    if dtype.kind != vector.dtype.kind and not (dtype.kind == "f" and vector.dtype.kind in "iu"):
        raise StateError(
            f"state {state!r} is declared as {type_info} and cannot hold values of type {vector.dtype}: convert them"
        )
    if type_info in BOUNDS and len(vector):
        lowest, highest = BOUNDS[type_info]
        if vector.min() < lowest or vector.max() > highest:
            odd = int(vector.min() if vector.min() < lowest else vector.max())
            raise StateError(f"state {state!r} is declared as {type_info} and cannot hold {odd}")
    return vector.astype(dtype), valid


class _ElementColumn:
    """Turns the elements of lists into a column of Arrow."""

    def __init__(self, column: ArrowColumn | None) -> None:
        self.type: Any = None if column is None else column.type
        convert = None if column is None else column.to_arrow
        self.convert: Callable[[Any], Any] | None = None if convert is None else nullable(convert)


def arrow_type_of(type_info: TypeInformation | None) -> _ElementColumn:
    """Return the column of values of a type; one whose type Arrow finds by its values if the type has no column."""
    if type_info is None:
        return _ElementColumn(None)
    try:
        return _ElementColumn(arrow_column(data_type_of(type_info, "a list of a state"), utc=True))
    except ConfigurationError:
        return _ElementColumn(None)


def list_array(lists: Sequence[Sequence[Any]], column: _ElementColumn) -> pa.ListArray:
    """Return lists as an array of Arrow."""
    offsets = np.zeros(len(lists) + 1, dtype=np.int32)
    np.cumsum([len(each) for each in lists], out=offsets[1:])
    flat = [value for each in lists for value in each]
    if column.convert is not None:
        flat = list(map(column.convert, flat))
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat, column.type))
