"""The classes of pickled values: noted while values are written, compared when they are restored.

A pickle names the classes of its objects, and for some of them contains the values of the fields by position only. So a
checkpoint records the classes of the values of a state, and the fields of dataclasses and named tuples. On restore the
classes of the program are compared with the record. In most cases nothing has changed, and nothing is done. Otherwise
the values are read through `Rebuilding`, which fills fields by name.
"""

from __future__ import annotations

import dataclasses
import io
import pickle
import types
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from ekorn.errors import CorruptFileError, StateMigrationError
from ekorn.state.evolution.converters import field_converters
from ekorn.state.evolution.type_descriptions import Incompatible, name_of
from ekorn.types.by_value import dumps
from ekorn.types.global_names import find_global
from ekorn.types.record_classes import RecordClass, is_named_tuple, record_class

ClassFields = dict[str, list[list[Any]] | None]
"""Fields as `[name, type]`, by the `module:qualified.name` of the class or function; None if it has no fields."""

_GLOBALS = (type, types.FunctionType, types.BuiltinFunctionType)
_NOT_NOTED = ("builtins", "copyreg", "ekorn.", "cloudpickle.")


class Noting:
    """Pickle the values of one state, and note their classes.

    One pickler is used for all values: without a memo it keeps nothing between values, and creating one takes longer
    than pickling a short list.
    """

    __slots__ = ("_buffer", "_pickler", "carried", "seen")

    def __init__(self) -> None:
        self.seen: dict[Any, None] = {}
        self.carried: ClassFields = {}  # the classes of restored values that were not written since
        self._begin()

    def _begin(self) -> None:
        self._buffer = io.BytesIO()
        self._pickler = _NotingPickler(self._buffer, pickle.HIGHEST_PROTOCOL)
        self._pickler.fast = True
        self._pickler.seen = self.seen

    def dumps(self, value: Any) -> bytes:  # hot
        """Pickle a value as `types.by_value.dumps` does."""
        try:
            self._pickler.dump(value)
        except (pickle.PicklingError, AttributeError, TypeError, ValueError, RecursionError):
            self._begin()
            return dumps(value)
        except BaseException:
            # The value's own code has raised: the bytes written so far must not become part of the next value.
            self._begin()
            raise
        data = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return data

    def described(self) -> ClassFields:
        """Return the classes of the values, for a checkpoint."""
        found = dict(self.carried)
        for each in self.seen:
            name = name_of(each)
            if not name.startswith(_NOT_NOTED) and "<" not in name:
                found[name] = fields_of(each)
        return dict(sorted(found.items()))


class _NotingPickler(pickle.Pickler):
    seen: dict[Any, None]

    def reducer_override(self, obj: Any) -> Any:  # hot: not called for numbers, text, bytes and plain containers
        if isinstance(obj, _GLOBALS) and obj not in self.seen:
            self.seen[obj] = None
        return NotImplemented


@lru_cache(maxsize=1000)
def fields_of(found: Any) -> list[list[Any]] | None:
    """Return the fields of a dataclass or named tuple with the default way of pickling; None for anything else."""
    described = record_class(found) if isinstance(found, type) and _pickles_by_fields(found) else None
    return None if described is None else [[f.name, f.type] for f in described.fields]


def _pickles_by_fields(cls: type) -> bool:
    """Return whether a class is pickled in Python's default way. Any other class handles its own evolution."""
    python: Any = object
    if cls.__reduce_ex__ is not python.__reduce_ex__ or cls.__reduce__ is not python.__reduce__:
        return False
    if is_named_tuple(cls):
        return True
    if not dataclasses.is_dataclass(cls):
        return False
    generated = getattr(dataclasses, "_dataclass_setstate", None)
    own = any(hasattr(cls, method) for method in ("__getnewargs__", "__getnewargs_ex__"))
    return getattr(cls, "__setstate__", generated) is generated and not own


# ------------------------------------------------------------------------------------------------------------- restore


def rebuilding(saved: Mapping[str, list[list[Any]] | None]) -> Rebuilding | None:
    """Return the reader for values whose classes have changed or are gone, or None if no class has changed.

    Raises:
        Incompatible: A class has changed so that its old instances cannot be converted.
    """
    changed: dict[str, Callable[..., Any] | str] = {}
    for name, fields in saved.items():
        module, _, qualified_name = name.partition(":")
        try:
            found = find_global(module, qualified_name)
        except LookupError as error:
            changed[name] = str(error)
            continue
        if fields is not None and fields_of(found) != fields:
            changed[name] = _shim(name, found, fields)
    return Rebuilding(changed) if changed else None


class Rebuilding:
    """Read pickles whose classes have changed: instances get the fields that their classes have now."""

    def __init__(self, changed: dict[str, Callable[..., Any] | str]) -> None:
        self._changed = changed

    def difference(self) -> str:
        """Return one of the changes in words."""
        name, why = next(iter(self._changed.items()))
        return f"{name.replace(':', '.')} {'is gone: ' + why if isinstance(why, str) else 'has other fields'}"

    def loads(self, data: bytes | bytearray) -> Any:
        """Read a pickled value.

        Raises:
            Incompatible: The value contains an instance of a class that is gone, or a field that cannot be converted.
        """
        return _Unpickler(io.BytesIO(data), self._changed).load()


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, changed: dict[str, Callable[..., Any] | str]) -> None:
        super().__init__(stream)
        self._changed = changed

    def find_class(self, module: str, name: str) -> Any:
        stand_in = self._changed.get(f"{module}:{name}")
        if stand_in is None:
            return super().find_class(module, name)
        if isinstance(stand_in, str):
            raise Incompatible(
                f"its values contain instances of {module}.{name}, which no longer exists: {stand_in}; restore the "
                f"class, or make {name.rpartition('.')[2]!r} in that module an alias of the class that replaced it"
            )
        return stand_in


def _shim(name: str, cls: type, old_fields: list[list[Any]]) -> Any:
    """Return a class that stands for a changed class in old pickles and creates instances of the current class."""
    described = record_class(cls)
    if described is None:
        raise Incompatible(f"{name.replace(':', '.')} was a dataclass or named tuple with fields and no longer is one")
    fill = field_converters(described, old_fields)
    if is_named_tuple(cls):
        return _named_tuple_shim(cls, [field for field, _ in old_fields], fill)
    return _dataclass_shim(cls, described, [field for field, _ in old_fields], fill)


Fill = Callable[[dict[str, Any]], dict[str, Any]]
"""Return the values of the fields that a class has now, from the values of those that it had."""


def _named_tuple_shim(cls: type, old_names: list[str], fill: Fill) -> type:
    def new(shim: type, *values: Any) -> Any:
        return cls(**fill(dict(zip(old_names, values, strict=True))))

    return type(f"{cls.__name__} as it was", (), {"__new__": new})


def _dataclass_shim(cls: type, described: RecordClass, old_names: list[str], fill: Fill) -> type:
    """Return an empty subclass; once its fields are known, an instance changes its class to the class itself."""
    set_attribute = object.__setattr__

    def set_state(self: Any, state: Any) -> None:
        values = _by_name(state, old_names)
        others = {name: value for name, value in values.items() if name not in old_names}
        given = fill({name: values[name] for name in old_names if name in values})
        set_attribute(self, "__class__", cls)
        for name, value in (others | given).items():
            set_attribute(self, name, value)

    def new(shim: type, *args: Any) -> Any:
        made: Any = object.__new__(shim)
        if not old_names:  # the pickle of an instance without attributes sets no state
            set_state(made, {})
        return made

    body = {"__slots__": (), "__new__": new, "__setstate__": set_state}
    return type(f"{cls.__name__} as it was", (cls,), body)


def _by_name(state: Any, old_names: list[str]) -> dict[str, Any]:
    """Return the result of `__getstate__` by name: it is a dict, a dict and one of slots, or a list of field values."""
    if isinstance(state, list):
        return dict(zip(old_names, state, strict=True))
    if isinstance(state, tuple):
        return {name: value for part in state if part for name, value in part.items()}
    return dict(state)


# The errors that `pickle.loads` raises for bytes that are no pickle. The class of the error depends on the wrong byte.
_NO_PICKLE = (pickle.UnpicklingError, EOFError, ValueError, OverflowError, LookupError, TypeError, MemoryError)


STANDING_IN: ContextVar[Callable[[Any], Any] | None] = ContextVar("ekorn_standing_in", default=None)
"""Reads pickles of keys whose classes cannot be imported, for tools that show and rewrite state; None refuses them."""


def loads(data: bytes | memoryview, where: str, unpickle: Callable[[Any], Any] = pickle.loads) -> Any:
    """Read a pickle of built-in values and the user's keys; `where` names the file in errors.

    Raises:
        StateMigrationError: The class of a key cannot be found.
        CorruptFileError: The bytes are no pickle, or only a part of one.
    """
    try:
        return unpickle(data)
    except _NO_PICKLE as error:
        found = f"bytes that are not a pickle ({error}): {bytes(data[:16])!r}"
        raise CorruptFileError(where, found, "pickled state") from error
    except (ImportError, AttributeError) as error:
        standing_in = STANDING_IN.get()
        if standing_in is not None and unpickle is pickle.loads:  # another unpickler restricts what a pickle may name
            return standing_in(data)
        raise StateMigrationError(
            f"cannot restore the keys in {where}: the class of a key no longer exists ({error}); restore the class, or "
            "make its name an alias of the class that replaced it"
        ) from error
