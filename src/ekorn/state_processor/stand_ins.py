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

from ekorn.state.evolution.pickled_classes import STANDING_IN

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
        if isinstance(state, tuple):  # a dict, and another dict for slots
            state = {name: value for part in state if part for name, value in part.items()}
        if isinstance(state, dict):
            return self._kwargs | state
        return self._kwargs if state is None else self._kwargs | {"state": state}


_KNOWN: dict[tuple[str, str], type[StandIn]] = {}
_IMPORTABLE: list[_Importable] = []  # the active blocks of `stand_ins_importable`


def _stand_in(module: str, name: str) -> type[StandIn]:
    found = _KNOWN.get((module, name))
    if found is None:
        body = {"__module__": module, "__qualname__": name}
        made: Any = _StandInClass(name.rpartition(".")[2], (StandIn,), body)
        found = _KNOWN[module, name] = made
        for importable in _IMPORTABLE[-1:]:
            importable.add(found)
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
    """Make stand-ins importable under the names of their classes, inside the block: pickle names only such classes.

    Stand-ins that are made inside the block are importable too.
    """
    importable = _Importable()
    _IMPORTABLE.append(importable)
    try:
        for cls in _KNOWN.values():
            importable.add(cls)
        yield
    finally:
        _IMPORTABLE.remove(importable)
        importable.remove()


class _Importable:
    """The modules and attributes under which stand-ins can be imported."""

    def __init__(self) -> None:
        self._attributes: list[tuple[Any, str]] = []
        self._modules: list[str] = []

    def add(self, cls: type[StandIn]) -> None:
        """Make a stand-in importable."""
        place = self._module(cls.__module__)
        *outer, last = cls.__qualname__.split(".")
        for each in outer:
            if not hasattr(place, each):
                self._set(place, each, types.SimpleNamespace())
            place = getattr(place, each)
        if not hasattr(place, last):
            self._set(place, last, cls)

    def _module(self, name: str) -> Any:
        """Return a module; one that does not exist is made, and so are the packages above it: pickle imports them."""
        above = name.rpartition(".")[0]
        if above:
            self._module(above)
        if name not in sys.modules:
            sys.modules[name] = types.ModuleType(name)
            self._modules.append(name)
        return sys.modules[name]

    def _set(self, place: Any, name: str, value: Any) -> None:
        setattr(place, name, value)
        self._attributes.append((place, name))

    def remove(self) -> None:
        """Take everything away again."""
        for place, name in reversed(self._attributes):
            delattr(place, name)
        for name in self._modules:
            del sys.modules[name]
