"""Queries of state and their answers as bytes, between a client and the driver.

A client with the token may read state and nothing else: decoding a query calls only the constructors of plain values. A
client decodes answers with all classes, because the values of the job need them. That is safe, since the driver has
proved to the client that it knows the token.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from io import BytesIO
from typing import Any, NamedTuple

from ekorn import errors
from ekorn.driver.queries.query_routing import Consistency
from ekorn.errors import QueryError, QueryRefused
from ekorn.types.by_value import dumps
from ekorn.types.composite_types import TupleTypeInfo
from ekorn.types.pojo import PojoTypeInfo
from ekorn.types.row import Row
from ekorn.types.type_information import TypeInformation

__all__ = ["Answer", "Query", "decode_answer", "decode_keys", "decode_query", "encode_answer", "encode_query"]

MOST_KEYS = 100_000  # the most keys of one query
_VALUES = {
    "builtins": {"complex", "frozenset"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "fractions": {"Fraction"},
    "uuid": {"SafeUUID", "UUID"},
    Row.__module__: {"Row", "_row_of_kind", "make_row"},
}


class Query(NamedTuple):
    """A query. The keys are pickled separately, because the key type of the state decides how they are decoded."""

    job: str
    name: str
    consistency: Consistency
    keys: bytes


class Answer(NamedTuple):
    """The answer to a query: the values, or the error."""

    kind: str = ""
    values: list[bytes | None] = []
    error: tuple[str, tuple[Any, ...]] | None = None  # the name of the class, and its arguments

    def raise_error(self) -> None:
        """Raise the error, if there is one."""
        if self.error is not None:
            name, arguments = self.error
            kind = getattr(errors, name, None)
            if not (isinstance(kind, type) and issubclass(kind, QueryError)):
                kind = QueryError
            raise kind(*arguments)


def encode_query(job: str, name: str, keys: list[Any], consistency: Consistency = "live") -> bytes:
    """Encode the keys of a query, and the state that they are looked up in."""
    return dumps((job, name, consistency, dumps(keys)))


def decode_query(message: bytes) -> Query:
    """Decode what `encode_query` returned.

    Raises:
        QueryRefused: The message is not a query.
    """
    match _plain(message, ()):
        case (str() as job, str() as name, "live" | "checkpoint" as consistency, bytes() as keys):
            return Query(job, name, consistency, keys)
    raise QueryRefused("the message is not a query")


def decode_keys(keys: bytes, key_type: TypeInformation | None) -> list[Any]:
    """Decode the keys of a query.

    Raises:
        QueryRefused: A key is of a class that is neither a plain value nor declared as the type of the keys.
    """
    found = _plain(keys, _classes(key_type))
    if not isinstance(found, list) or len(found) > MOST_KEYS:
        raise QueryRefused(f"a query has a list of at most {MOST_KEYS} keys")
    return found


def encode_answer(answer: Answer) -> bytes:
    """Encode an answer."""
    return dumps(tuple(answer))


def decode_answer(message: bytes) -> Answer:
    """Decode what `encode_answer` returned."""
    return Answer(*pickle.loads(message))


class _PlainValues(pickle.Unpickler):
    """Decodes plain values, and instances of some classes. Anything else that a pickle could call is refused."""

    def __init__(self, data: bytes, classes: Iterable[type]) -> None:
        super().__init__(BytesIO(data))
        self._classes = {(each.__module__, each.__qualname__): each for each in classes}

    def find_class(self, module: str, name: str) -> Any:
        if name in _VALUES.get(module, ()):
            return super().find_class(module, name)
        found = self._classes.get((module, name))
        if found is None:
            raise QueryRefused(
                f"a key of class {module}.{name} cannot be queried: use a plain value, or declare the class as the "
                "key type in key_by()"
            )
        return found


def _plain(data: bytes, classes: Iterable[type]) -> Any:
    try:
        return _PlainValues(data, classes).load()
    except QueryRefused:
        raise
    except Exception as error:  # whatever the bytes of a client make pickle raise
        raise QueryRefused(f"the message cannot be decoded ({type(error).__name__}: {error})") from None


def _classes(key_type: TypeInformation | None) -> list[type]:
    match key_type:
        case PojoTypeInfo():
            return [key_type.get_class()]
        case TupleTypeInfo():
            return [each for field in key_type.get_field_types() for each in _classes(field)]
        case _:
            return []
