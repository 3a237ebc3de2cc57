"""Declarations of states: how the values of a state are kept, and what a checkpoint records about them.

`StateInfo.schema` is a `Described` as JSON (docs/formats/state-types.md):

    {"version": 1, "key": ..., "key_classes": ..., "map_key": ..., "value": ..., "classes": ...}
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ekorn.errors import CorruptFileError, StateError
from ekorn.functions.state.state_descriptors import MapStateDescriptor, StateDescriptor
from ekorn.keygroups import user_key
from ekorn.state.codecs import Codec, MapKeyCodec, PickledCodec, SerializerCodec, codec_for
from ekorn.state.evolution.pickled_classes import ClassFields, Noting
from ekorn.state.evolution.type_descriptions import PICKLED, Schema, describe
from ekorn.state.snapshots import StateInfo
from ekorn.types.type_information import TypeInformation

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Described:
    """The description of one state's values in a checkpoint."""

    value: Schema = PICKLED
    classes: ClassFields = field(default_factory=dict)
    map_key: Schema = PICKLED
    key: Schema = PICKLED  # the type of the stream's keys
    key_classes: ClassFields = field(default_factory=dict)  # the classes of the stream's keys and of the map's keys

    def encode(self) -> str:
        """Return the JSON for `StateInfo.schema`."""
        document = {"version": SCHEMA_VERSION, "value": self.value, "key": self.key, "map_key": self.map_key}
        document |= {"classes": self.classes, "key_classes": self.key_classes}
        return json.dumps({word: content for word, content in document.items() if content not in (PICKLED, {})})

    @staticmethod
    def decode(schema: str, state: str) -> Described:
        """Decode what `encode` returned.

        Raises:
            CorruptFileError: The description is damaged, or of a version that this release does not know.
        """
        document: dict[str, Any] = json.loads(schema) if schema else {"version": SCHEMA_VERSION}
        version = document.pop("version", None)
        if version != SCHEMA_VERSION:
            newest = f"version {SCHEMA_VERSION}, the newest this release of ekorn reads"
            raise CorruptFileError(f"the type of state {state!r}", f"version {version}", newest)
        try:
            return Described(**document)
        except TypeError as error:
            raise CorruptFileError(f"the type of state {state!r}", str(error), "a description of a type") from None


def merged(infos: Iterable[StateInfo]) -> tuple[StateInfo, ...]:
    """Merge what all subtasks record about their states: each subtask may hold values of other classes."""
    together: dict[tuple[bool, str], StateInfo] = {}
    for info in infos:
        name = (info.of_subtask, info.name)
        known = together.setdefault(name, info)
        if known.schema != info.schema:
            one, other = Described.decode(known.schema, info.name), Described.decode(info.schema, info.name)
            both = replace(other, classes=one.classes | other.classes, key_classes=one.key_classes | other.key_classes)
            together[name] = replace(info, schema=both.encode())
    return tuple(together.values())


class Declaration:
    """One state of one operator as its descriptor declares it."""

    def __init__(
        self,
        info: StateInfo,
        value: Codec,
        map_key: MapKeyCodec | None = None,
        key_type: TypeInformation | None = None,
    ) -> None:
        self.value = value
        self.map_key = map_key
        self._key = describe(key_type)
        self._restored_key_classes: ClassFields = {}
        self.info = replace(info, schema=self.described().encode())

    def described(self, some_key: Any = None) -> Described:
        """Describe the values for a checkpoint taken now; `some_key` is any key of the state, if it has one."""
        return Described(
            value=self.value.schema(),
            classes=self.value.classes(),
            map_key=PICKLED if self.map_key is None else self.map_key.values.schema(),
            key=self._key,
            key_classes=self._restored_key_classes | self._key_classes(some_key),
        )

    def saved_as(self, some_key: Any = None) -> StateInfo:
        """Describe the state for the metadata of a checkpoint; `some_key` is any key of it, in the form of tables."""
        return replace(self.info, schema=self.described(some_key).encode())

    def carry(self, saved: Described) -> None:
        """Note the classes of restored entries that stay as they are."""
        self.value.carry(saved.classes)
        self._restored_key_classes = saved.key_classes

    def _key_classes(self, some_key: Any) -> ClassFields:
        noting = Noting()
        if some_key is not None:
            noting.dumps(user_key(some_key))
        return noting.described() | (self.map_key.values.classes() if self.map_key is not None else {})


def says_the_same(one: StateDescriptor | None, other: StateDescriptor) -> bool:
    """Return whether two descriptors of one name declare the same.

    This is far cheaper than calling `declare` for both.
    """
    if one is other:
        return True
    if (
        one is None
        or one.queryable_name != other.queryable_name
        or one.kind != other.kind
        or (one.ttl_config is None) != (other.ttl_config is None)
    ):
        return False
    return _is_same(one.value_type, other.value_type) and _is_same(one.map_key_type, other.map_key_type)


def _is_same(one: TypeInformation | None, other: TypeInformation | None) -> bool:
    # Flink: row types with different field names are equal. As types of state they are not equal, and their texts
    # differ.
    return one is other or (one == other and str(one) == str(other))


def declare(
    descriptor: StateDescriptor, kind: str, key_type: TypeInformation | None = None, name: str | None = None
) -> Declaration:
    """Return the declaration of a descriptor.

    Args:
        descriptor: The descriptor.
        kind: The kind of state, with its scope: `value`, `window-list`, `list-split`, `broadcast`, ...
        key_type: The declared type of the stream's keys.
        name: The name of the state in checkpoints, if it is not the descriptor's.
    """
    name = name or descriptor.name
    info = StateInfo(
        name=name,
        kind=kind,
        type_text=str(descriptor.type_info) if descriptor.type_info is not None else "pickled",
        ttl=descriptor.ttl_config is not None,
    )
    made = codec_for if descriptor.checks_values else PickledCodec
    codec = made(name, descriptor.value_type)
    _check_default(descriptor, codec)
    map_key = MapKeyCodec(name, descriptor.map_key_type) if isinstance(descriptor, MapStateDescriptor) else None
    return Declaration(info, codec, map_key, key_type)


def _check_default(descriptor: StateDescriptor, codec: Codec) -> None:
    """Refuse a default value that could not be written to the state later."""
    default = getattr(descriptor, "default_value", None)
    if default is None or isinstance(codec, SerializerCodec):
        return
    try:
        codec.stored(default)
    except StateError as error:
        raise StateError(f"the default value of {descriptor!r} cannot be used: {error}") from None
