"""Looks up keys in a queryable state, for clients outside the job. Nothing of the state changes.

A look-up runs between two steps of user code (`slot/user_code_lock.py`): it sees whole values, of either backend and of
the dictionaries in front of them, and needs no locks of its own. A value that has expired is not shown, unless
the state's configuration makes expired values visible. A look-up neither renews nor removes it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from typing import Any

from ekorn.errors import QueryRefused
from ekorn.functions.aggregate_state import AggregateStateDescriptor
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.keygroups import state_key
from ekorn.state.codecs import PickledCodec
from ekorn.state.declared import Declaration
from ekorn.state.entry_shapes import ONE_VALUE, Convert, itself
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.state.kinds import KINDS
from ekorn.types.by_value import dumps

__all__ = ["MOST_ANSWER_BYTES", "look_up", "too_large"]

MOST_ANSWER_BYTES = 64 << 20  # the most bytes that the values of one answer have together

_PLAIN = frozenset({int, float, str, bool, bytes})


def look_up(
    backend: KeyedStateBackend, descriptor: StateDescriptor, keys: Iterable[Any], now_ms: int
) -> list[bytes | None]:
    """Return the pickled value of each key, and None for a key that has none.

    The value of list state is a list, that of map state a list of pairs.

    Args:
        backend: The backend with the state.
        descriptor: The descriptor by which the program asked for the state.
        keys: The keys as the program gives them.
        now_ms: The processing time, by which values expire.

    Raises:
        QueryRefused: The values are larger than an answer may be.
    """
    entry, name = backend.entry, descriptor.name
    unexpired = _unexpired(descriptor, now_ms)
    pickled = _pickled(descriptor, backend.declaration(name))
    answers: list[bytes | None] = []
    left = MOST_ANSWER_BYTES
    for key in keys:  # hot
        kept = entry(name, state_key(key))
        if kept is not None and unexpired is not None:
            kept = unexpired(kept)
        if kept is None:
            answers.append(None)
            continue
        value = pickled(kept)
        left -= len(value)
        if left < 0:
            raise QueryRefused(too_large(len(answers) + 1, MOST_ANSWER_BYTES - left))
        answers.append(value)
    return answers


def too_large(keys: int, size: int) -> str:
    """Return why the values of some keys are not an answer."""
    what = "the value of the key takes" if keys == 1 else f"the values of {keys} of the keys take"
    return f"{what} {size} bytes; the maximum is {MOST_ANSWER_BYTES}: ask for fewer keys, or keep smaller values"


def _unexpired(descriptor: StateDescriptor, now_ms: int) -> Convert | None:
    """Return a function that removes stamps and expired values from an entry; None if the state does not expire.

    The function returns None if nothing of an entry is left.
    """
    config = descriptor.ttl_config
    if config is None:
        return None
    shows_expired = config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
    shape, dead_ms = KINDS[descriptor.kind].shape, now_ms - config.get_ttl().to_milliseconds()
    left, without_stamps = shape.left, shape.without_stamps

    def shown(kept: Any) -> Any:
        rest = kept if shows_expired else left(kept, dead_ms)
        return None if rest is None else without_stamps(rest)

    return shown


def _pickled(descriptor: StateDescriptor, declared: Declaration) -> Callable[[Any], bytes]:
    """Return a function that pickles the value of an entry without stamps."""
    kind, loaded = KINDS[descriptor.kind], declared.value.loaded
    if isinstance(descriptor, AggregateStateDescriptor):
        return lambda kept: dumps(descriptor.answer(loaded(kept)))
    if kind.shape is not ONE_VALUE:
        map_key = itself if declared.map_key is None else declared.map_key.loaded
        return kind.shape.answer(loaded, map_key, dumps)
    if kind.result is not None:
        result = kind.result(descriptor)
        return lambda kept: dumps(result(loaded(kept)))
    if isinstance(declared.value, PickledCodec):  # a bytearray is the pickle already
        return lambda kept: bytes(kept) if type(kept) is bytearray else _dumps_plain(kept)
    return lambda kept: _dumps_plain(loaded(kept))


def _dumps_plain(value: Any) -> bytes:
    """Pickle a value.

    A plain value needs no buffer of its own; creating one would cost more than pickling the value.
    """
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL) if type(value) in _PLAIN else dumps(value)
