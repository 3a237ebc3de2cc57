"""`Vectors`: some vectors of one length, which grow together."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ekorn.columns.key_words import Grown, Rows

__all__ = ["Vectors"]


class Vectors:
    """The base of classes whose slots are vectors of one length."""

    __slots__: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        """The number of elements of each vector."""
        vector: Grown = getattr(self, self.__slots__[0])
        return vector.length

    def append(self, **more: NDArray[Any]) -> None:
        """Append elements to each vector."""
        for name in self.__slots__:
            getattr(self, name).extend(more[name])

    def truncate(self, count: int) -> None:
        """Forget the elements that came last, and keep so many."""
        for name in self.__slots__:
            getattr(self, name).truncate(count)

    def chosen(self, rows: Rows) -> dict[str, NDArray[Any]]:
        """Return copies of some elements of each vector, by its name, for `append`."""
        return {name: getattr(self, name).values[rows] for name in self.__slots__}

    def kept(self, rows: Rows) -> list[NDArray[Any]]:
        """Return copies of some elements of each vector, for `put_back`."""
        return [getattr(self, name).values[rows] for name in self.__slots__]

    def put_back(self, rows: Rows, kept: list[NDArray[Any]]) -> None:
        """Set some elements of each vector."""
        for name, values in zip(self.__slots__, kept, strict=True):
            getattr(self, name).values[rows] = values

    @property
    def size_bytes(self) -> int:
        """The memory of the vectors."""
        return sum(getattr(self, name).size_bytes for name in self.__slots__)
