"""Values of classes that cannot be imported here: shown by name and content, and written again as they were.

A pickle names the classes of its objects. A tool that reads the state of a job often runs without the job's modules. A
stand-in takes the place of a class, remembers how each of its instances was made, and is pickled as the instance was:
where the class can be imported, the pickle gives an instance of the class.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tamias.state.evolution.pickled_classes import STANDING_IN

__all__ = ["StandIn", "load_value", "missing_classes_allowed", "stand_ins_importable"]


class _StandInClass(type):
    """The class of stand-in classes: a pickle makes an instance by a call, or by `__new__` alone."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made: Any = cls.__new__(cls, *args, **kwargs)  # type: ignore[arg-type]
        made._called = True
        return made


class StandIn(metaclass=_StandInClass):
    """An instance of a class that cannot be imported."""

    _called = False
    _state: Any = None
    _items: tuple[Any, ...] = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> StandIn:
        made = object.__new__(cls)
        made._args, made._kwargs = args, kwargs
        return made

    _args: tuple[Any, ...]
    _kwargs: dict[str, Any]

    def __setstate__(self, state: Any) -> None:
        object.__setattr__(self, "_state", state)

    def append(self, item: Any) -> None:
        """Take an item of a class that extends list."""
        self._items = (*self._items, item)

    def extend(self, items: Any) -> None:
        """Take items of a class that extends list."""
        self._items = (*self._items, *items)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._called:
            how: tuple[Any, ...] = (type(self), self._args)
        elif self._kwargs:
            how = (copyreg.__newobj_ex__, (type(self), self._args, self._kwargs))  # type: ignore[attr-defined]
        else:
            how = (copyreg.__newobj__, (type(self), *self._args))  # type: ignore[attr-defined]
        return (*how, self._state, iter(self._items) if self._items else None)

    def _content(self) -> tuple[Any, ...]:
        return (type(self).__module__, type(self).__qualname__, self._args, self._kwargs, self._state, self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StandIn) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash((type(self).__module__, type(self).__qualname__, repr(self)))

    def __repr__(self) -> str:
        fields = [*map(repr, self._args), *(f"{name}={value!r}" for name, value in self._fields().items())]
        fields += map(repr, self._items)
        return f"{type(self).__module__}.{type(self).__qualname__}({', '.join(fields)})"

    def _fields(self) -> dict[str, Any]:
        state = self._state
        if isinstance(state, tuple):  # a dict, and one of slots
            state = {name: value for part in state if part for name, value in part.items()}
        if isinstance(state, dict):
            return self._kwargs | state
        return self._kwargs if state is None else self._kwargs | {"state": state}


_KNOWN: dict[tuple[str, str], type[StandIn]] = {}


def _stand_in(module: str, name: str) -> type[StandIn]:
    found = _KNOWN.get((module, name))
    if found is None:
        body = {"__module__": module, "__qualname__": name}
        made: Any = _StandInClass(name.rpartition(".")[2], (StandIn,), body)
        found = _KNOWN[module, name] = made
    return found


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError):
            return _stand_in(module, name)


def load_value(data: Any) -> Any:
    """Read a pickle. Instances of classes that cannot be imported are stand-ins."""
    return _Unpickler(io.BytesIO(data)).load()


@contextmanager
def missing_classes_allowed() -> Iterator[None]:
    """Read keys of classes that cannot be imported as stand-ins, inside the block."""
    token = STANDING_IN.set(load_value)
    try:
        yield
    finally:
        STANDING_IN.reset(token)


@contextmanager
def stand_ins_importable() -> Iterator[None]:
    """Make stand-ins importable under the names of their classes, inside the block: pickle names only such classes."""
    made: list[tuple[Any, str]] = []
    modules: list[str] = []
    try:
        for (module_name, name), cls in _KNOWN.items():
            place: Any = sys.modules.get(module_name)
            if place is None:
                place = sys.modules[module_name] = types.ModuleType(module_name)
                modules.append(module_name)
            *outer, last = name.split(".")
            for each in outer:
                if not hasattr(place, each):
                    setattr(place, each, types.SimpleNamespace())
                    made.append((place, each))
                place = getattr(place, each)
            if not hasattr(place, last):
                setattr(place, last, cls)
                made.append((place, last))
        yield
    finally:
        for place, name in reversed(made):
            delattr(place, name)
        for module_name in modules:
            del sys.modules[module_name]
