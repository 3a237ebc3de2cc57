"""Answers with the state of a running job: which states can be queried, and the values of keys."""

from __future__ import annotations

import dataclasses
import math
import pickle
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import date, time
from typing import Any

from ekorn.driver.queries.state_reader import Consistency, StateReader
from ekorn.errors import QueryError, StateNotServed, UnknownKey, UnknownQueryableState, preview
from ekorn.rest.key_text import key_of_json, key_of_text
from ekorn.rest.known_jobs import KnownJob
from ekorn.state.kinds import KINDS
from ekorn.types.row import Row
from ekorn.types.type_information import TypeInformation
from ekorn.web.http_messages import HttpError, Request

_MOST_KEYS = 10_000
_LONGEST_TEXT = 10_000

MakeKey = Callable[[Any, TypeInformation | None], Any]


def states(job: KnownJob) -> dict[str, Any]:
    """Answer `/jobs/:jobid/state`: the queryable states, and how their keys are written."""
    reader = job.view.state_reader
    found = () if reader is None else reader.states()
    return {
        "enabled": job.statistics.settings.queryable.enabled,
        "states": [
            {"name": each.name, "kind": each.kind, "operator": each.operator, "keyType": _key_type(reader, each.name)}
            for each in found
            if reader is not None
        ],
    }


def _key_type(reader: StateReader, name: str) -> str:
    try:
        key_type = reader.key_type(name)
    except QueryError:  # the job is restarting
        return "not declared"
    return "not declared" if key_type is None else str(key_type)


def look_up_texts(job: KnownJob, request: Request) -> dict[str, Any]:
    """Answer GET `/jobs/:jobid/state/:name`: the values of the keys in the query parameters `key`.

    Raises:
        HttpError: There is no such state or, asked for one key alone, no value; or the job cannot answer now.
    """
    keys = list(request.query.get("key", ()))
    return _look_up(job, request, keys, key_of_text, request.one("consistency"))


def look_up_values(job: KnownJob, request: Request) -> dict[str, Any]:
    """Answer POST `/jobs/:jobid/state/:name`: the values of the `keys` in the body, which are values of JSON.

    Raises:
        HttpError: As for the GET.
    """
    fields = request.json_object()
    keys = fields.get("keys")
    if not isinstance(keys, list):
        raise HttpError(400, "the field 'keys' is not a list")
    return _look_up(job, request, keys, key_of_json, fields.get("consistency"))


def _look_up(
    job: KnownJob, request: Request, given: Sequence[Any], make_key: MakeKey, consistency: Any
) -> dict[str, Any]:
    name = request.parameters["name"]
    if not 1 <= len(given) <= _MOST_KEYS:
        raise HttpError(400, f"a query takes 1 to {_MOST_KEYS} keys, not {len(given)}: write ?key=... for each")
    chosen = _consistency(consistency)
    try:
        reader = _reader(job, name)
        key_type = reader.key_type(name)
        keys = [make_key(each, key_type) for each in given]
        kind, values = reader.look_up(name, keys, chosen)
        if len(keys) == 1 and values[0] is None:
            raise UnknownKey(name, preview(keys[0]))
    except QueryError as error:
        raise HttpError(_status(error), str(error)) from None
    entries = [_entry(key, kind, value) for key, value in zip(keys, values, strict=True)]
    return {"name": name, "kind": kind, "consistency": chosen, "entries": entries}


def _consistency(given: Any) -> Consistency:
    match given:
        case None | "live":
            return "live"
        case "checkpoint":
            return "checkpoint"
    raise HttpError(400, f"the consistency is 'live' or 'checkpoint', not {preview(given, 40)}")


def _reader(job: KnownJob, name: str) -> StateReader:
    reader = job.view.state_reader
    if reader is not None:
        return reader
    if job.status.is_terminal_state():
        raise StateNotServed(name, f"job {job.view.job_name!r} is {job.status.name}")
    raise StateNotServed(name, f"job {job.view.job_name!r} does not run with queryable-state.enable: true")


def _status(error: QueryError) -> int:
    match error:
        case UnknownQueryableState() | UnknownKey():
            return 404
        case StateNotServed():
            return 409
        case _:
            return 400


def _entry(key: Any, kind: str, pickled: bytes | None) -> dict[str, Any]:
    """Return a key and its value, as JSON and as Python text. The Python text loses no digit."""
    if pickled is None:
        return {"key": preview(key), "found": False, "value": None, "text": None}
    try:
        value = pickle.loads(pickled)
    except Exception as error:  # a class of the user may raise anything
        raise HttpError(409, f"the value of key {preview(key)} cannot be read in the driver: {error}") from None
    value = KINDS[kind].shape.from_answer(value)
    return {"key": preview(key), "found": True, "value": as_json(value), "text": preview(value, _LONGEST_TEXT)}


_DEEPEST = 50
_LONGEST_INT_BITS = 10_000  # Python refuses to write integers of more than 4,300 digits


def as_json(value: Any, depth: int = _DEEPEST) -> Any:
    """Return a value that can be written as JSON. A value that JSON cannot express becomes its repr.

    Very long integers become their hexadecimal form.

    >>> as_json({"a": (1, 2.5, None), "b": b"xy"}), as_json({1: float("nan")})
    ({'a': [1, 2.5, None], 'b': 'eHk='}, [[1, 'nan']])
    """
    kind = type(value)
    if kind is int and value.bit_length() > _LONGEST_INT_BITS:
        return hex(value)
    if kind in (bool, int, str, type(None)):
        return value
    if kind is float:
        return value if math.isfinite(value) else repr(value)
    if depth == 0:
        return preview(value, _LONGEST_TEXT)
    deeper = depth - 1
    if kind is dict:
        if all(type(key) is str for key in value):
            return {key: as_json(each, deeper) for key, each in value.items()}
        return [[as_json(key, deeper), as_json(each, deeper)] for key, each in value.items()]
    if kind is Row and hasattr(value, "_fields"):
        return {name: as_json(each, deeper) for name, each in zip(value._fields, value, strict=False)}
    if isinstance(value, (list, tuple, set, frozenset, Row)):
        return [as_json(each, deeper) for each in value]
    if isinstance(value, (bytes, bytearray)):
        return b64encode(value).decode()
    if isinstance(value, (date, time)):  # a datetime is a date too
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: as_json(getattr(value, name, None), deeper) for name in names}
    return preview(value, _LONGEST_TEXT)
