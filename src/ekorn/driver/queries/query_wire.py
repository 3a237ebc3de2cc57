"""Queries of state and their answers as bytes, between a client and the driver.

A client with the token may read state and nothing else: a query consists of plain values (`plain_values.py`), and its
bytes and keys are bounded. A client decodes answers with all classes, because the values of the job need them. That is
safe, since the driver has proved to the client that it knows the token.
"""

from __future__ import annotations

import pickle
import struct
from typing import Any, NamedTuple

from ekorn import errors
from ekorn.driver.queries.plain_values import decode_list, encode_list
from ekorn.driver.queries.query_routing import Consistency
from ekorn.errors import QueryError, QueryRefused
from ekorn.types.by_value import dumps
from ekorn.types.composite_types import TupleTypeInfo
from ekorn.types.pojo import PojoTypeInfo
from ekorn.types.type_information import TypeInformation

__all__ = [
    "MOST_KEYS",
    "MOST_QUERY_BYTES",
    "Answer",
    "Query",
    "decode_answer",
    "decode_keys",
    "decode_query",
    "encode_answer",
    "encode_query",
]

MOST_KEYS = 2_000  # the most keys of one query; a client sends more in several
MOST_QUERY_BYTES = 8 << 20  # the most bytes of one query
_HEADER = struct.Struct("<4sBHH")  # the mark, the consistency, and the lengths of the ids of job and state in UTF-8
_MARK = b"EQ1\n"
_CONSISTENCIES: tuple[Consistency, ...] = ("live", "checkpoint")


class Query(NamedTuple):
    """A query. The keys are decoded separately, because the key type of the state decides how they are decoded."""

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
    """Encode the keys of a query, and the state that they are looked up in.

    Raises:
        QueryRefused: A key is not a plain value, or the query is larger than the driver accepts.
    """
    of_job, of_state = job.encode("utf-8", "surrogatepass"), name.encode("utf-8", "surrogatepass")
    if max(len(of_job), len(of_state)) > 0xFFFF:
        raise QueryRefused("the id of the job or the name of the state is longer than 65,535 bytes")
    header = _HEADER.pack(_MARK, _CONSISTENCIES.index(consistency), len(of_job), len(of_state))
    message = b"".join((header, of_job, of_state, encode_list(keys)))
    if len(message) > MOST_QUERY_BYTES:
        raise QueryRefused(
            f"{len(keys)} keys of a query take {len(message)} bytes; the maximum is {MOST_QUERY_BYTES}: ask for "
            "fewer keys per call"
        )
    return message


def decode_query(message: bytes) -> Query:
    """Decode what `encode_query` returned.

    Raises:
        QueryRefused: The message is not a query.
    """
    try:
        mark, consistency, of_job, of_state = _HEADER.unpack_from(message)
        start, end = _HEADER.size + of_job, _HEADER.size + of_job + of_state
        job = str(message[_HEADER.size : start], "utf-8", "surrogatepass")
        name = str(message[start:end], "utf-8", "surrogatepass")
    except (struct.error, UnicodeDecodeError):
        mark = b""
    if mark != _MARK or consistency >= len(_CONSISTENCIES) or end > len(message):
        raise QueryRefused("the message is not a query of this version of ekorn")
    return Query(job, name, _CONSISTENCIES[consistency], message[end:])


def decode_keys(keys: bytes, key_type: TypeInformation | None) -> list[Any]:
    """Decode the keys of a query.

    Raises:
        QueryRefused: A key is of a class that is neither a plain value nor declared as the type of the keys, or there
            are too many keys.
    """
    found = decode_list(keys, _classes(key_type))
    if len(found) > MOST_KEYS:
        raise QueryRefused(f"a query has {len(found)} keys; the maximum is {MOST_KEYS}: use several queries")
    return found


def encode_answer(answer: Answer) -> bytes:
    """Encode an answer."""
    return dumps(tuple(answer))


def decode_answer(message: bytes) -> Answer:
    """Decode what `encode_answer` returned."""
    return Answer(*pickle.loads(message))


def _classes(key_type: TypeInformation | None) -> list[type]:
    match key_type:
        case PojoTypeInfo():
            return [key_type.get_class()]
        case TupleTypeInfo():
            return [each for field in key_type.get_field_types() for each in _classes(field)]
        case _:
            return []
