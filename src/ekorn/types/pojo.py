"""`PojoTypeInfo`: the type of instances of a dataclass or a named tuple, which Flink calls a POJO."""

from __future__ import annotations

from typing import Any

from ekorn.errors import preview
from ekorn.types.record_classes import is_record_class
from ekorn.types.type_information import Column, Misfit, TypeInformation, all_are

__all__ = ["PojoTypeInfo"]


class PojoTypeInfo(TypeInformation):
    """The type of the instances of one dataclass or named tuple. The values of the fields are not checked."""

    def __init__(self, record_class: type) -> None:
        if not is_record_class(record_class):
            raise TypeError(f"Types.POJO takes a dataclass or a NamedTuple class, not {record_class!r}")
        if "<" in record_class.__qualname__:
            raise ValueError(
                f"{record_class.__qualname__} is defined inside a function, where a restore cannot find the class; "
                f"define it at the top of a module"
            )
        self._class = record_class

    @property
    def name(self) -> str:
        """Return the name of the class in checkpoints: ``module:qualified.name``."""
        return f"{self._class.__module__}:{self._class.__qualname__}"

    def get_class(self) -> type:
        """Return the class."""
        return self._class

    def _fit(self, column: Column) -> Column:
        if not all_are(self._class, column):
            for value in column:
                if not isinstance(value, self._class):
                    raise Misfit(
                        f"expected a {self._class.__name__}, found {preview(value, 80)} ({type(value).__name__})"
                    )
        return column

    def _identity(self) -> tuple[Any, ...]:
        return (self._class,)

    def __repr__(self) -> str:
        return f"POJO<{self._class.__module__}.{self._class.__qualname__}>"
