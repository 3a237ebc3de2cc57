"""Where an exception comes from: the program, this package and what carries it, or what the program reaches outside."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from types import TracebackType

from ekorn.errors.base import PUBLIC_PATH

__all__ = ["is_library", "is_own", "is_own_or_carrier", "program_line", "reaches_outside"]

_OWN = (os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ""), "<chain ")
_CARRIERS = ("cloudpickle", "py4j", "pyspark")  # they carry functions and records of the program
_LIBRARIES = (
    *{os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    "<frozen ",
)
# Classes of exceptions by which a machine, a disk, a network or a service fails. DB-API names two of them.
_OWN_OUTSIDE = frozenset({"DatabaseError", "HttpLookupError", "KafkaError", "SchemaRegistryError", "SpoolError"})
_OUTSIDE = frozenset(
    {
        "MemoryError",
        "OSError",
        "OperationalError",
        "InterfaceError",
        "TransportError",
        "RpcError",
        "KafkaError",
        "KafkaException",
        "BotoCoreError",
    }
)


def is_own(filename: str) -> bool:
    """Return whether a file is one of this package, or code that this package has generated."""
    return filename.startswith(_OWN)


def is_own_or_carrier(filename: str) -> bool:
    """Return whether a file is one of this package, or of a package that carries what the program does.

    >>> is_own_or_carrier(__file__), is_own_or_carrier("program.py")
    (True, False)
    """
    return filename.startswith((*_OWN, *_carriers()))


def is_library(filename: str) -> bool:
    """Return whether a file is one of an installed package or of Python, and not of this package or a carrier."""
    return filename.startswith(_LIBRARIES) and not is_own_or_carrier(filename)


@cache
def _carriers() -> tuple[str, ...]:
    """Return the folders of the packages that carry functions and records. The packages are not imported."""
    found: list[str] = []
    for name in _CARRIERS:
        spec = find_spec(name)
        found += [os.path.join(each, "") for each in (spec.submodule_search_locations or ())] if spec else []
    return tuple(found)


def program_line(frames: TracebackType | None) -> str | None:
    """Return the innermost line of the program in a traceback, such as ``price() at program.py:12``.

    The lines of installed packages count only if no other line is the program's. None if no line is.
    """
    users = [each for each in _each(frames) if not is_own_or_carrier(each.tb_frame.f_code.co_filename)]
    own = [each for each in users if not each.tb_frame.f_code.co_filename.startswith(_LIBRARIES)]
    if not users:
        return None
    innermost = (own or users)[-1]
    code = innermost.tb_frame.f_code
    name = code.co_qualname.rpartition("<locals>.")[2]
    what = "a lambda" if name.endswith("<lambda>") else "the program" if name == "<module>" else f"{name}()"
    return f"{what} at {code.co_filename}:{innermost.tb_lineno}"


def _each(frames: TracebackType | None) -> Iterator[TracebackType]:
    while frames is not None:
        yield frames
        frames = frames.tb_next


def reaches_outside(error: BaseException) -> bool:
    """Return whether an exception may be the fault of a machine, a disk, a network or a service, not of the program.

    >>> reaches_outside(ConnectionResetError()), reaches_outside(KeyError("price"))
    (True, False)
    """
    return any(
        kind.__name__ in (_OUTSIDE | _OWN_OUTSIDE if kind.__module__ == PUBLIC_PATH else _OUTSIDE)
        for kind in type(error).__mro__
    )
