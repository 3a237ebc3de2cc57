"""Compare a restored state with the state that the job declares, and convert its entries if the types differ.

A backend calls `migrate` once for each state, when the job declares the state after a restore:

    migration = migrate(saved_info, declared, operator)   # raises StateMigrationError
    if migration is not None:                             # convert every restored entry, once
        entry = migration.entry(entry)                    #   a whole entry as docs/formats/heap-state.md describes it
        kept = migration.value(kept)                      #   or one kept value, element or value of a map

The backend converts all entries at once, because the next checkpoint describes them by the new declaration. Keys are
not converted: their type may not change.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import replace
from io import BytesIO
from typing import Any

from ekorn.errors import StateError, StateMigrationError
from ekorn.state.codecs import Codec, PickledCodec, SerializerCodec
from ekorn.state.declared import Declaration, Described
from ekorn.state.evolution.converters import Converter, converter
from ekorn.state.evolution.pickled_classes import rebuilding
from ekorn.state.evolution.type_descriptions import PICKLED, Incompatible, Schema, changed, describe, spell
from ekorn.state.kinds import shape_of
from ekorn.state.snapshots import StateInfo
from ekorn.types.global_names import find_global
from ekorn.types.serializer import TypeSerializer, TypeSerializerSnapshot
from ekorn.types.type_information import TypeInformation


def check_restorable(saved: StateInfo | None, declared: StateInfo, operator: str = "") -> None:
    """Refuse a declaration whose kind of state differs from the kind of the restored entries.

    Raises:
        StateMigrationError: The kinds differ; the message names the state and the difference.
    """
    if saved is None:
        return
    if saved.kind != declared.kind:
        raise _refused(
            declared.name,
            operator,
            f"it was saved as {saved.kind} state and is declared as {declared.kind} state; "
            f"declare it as {saved.kind}, or rename it to start it empty",
        )
    if saved.ttl != declared.ttl:
        had, has = ("with", "without") if saved.ttl else ("without", "with")
        raise _refused(
            declared.name,
            operator,
            f"it was saved {had} time-to-live and is declared {has} it; "
            f"declare it as it was saved, or rename it to start it empty",
        )


def check_keys(saved: Iterable[StateInfo], key_type: TypeInformation | None, operator: str = "") -> None:
    """Refuse a key type that differs from the key type of the restored states, before any state is read.

    Raises:
        StateMigrationError: The types differ; the message names a state and the difference.
    """
    for info in saved:
        try:
            before = Described.decode(info.schema, info.name)
            _check_keys(before, replace(before, key=describe(key_type)))
        except Incompatible as error:
            raise _refused(info.name, operator, f"{error}. {_OTHER_KEYS}") from error


_OTHER_KEYS = "Restore with the old keys, or give the operator another uid to start it empty"


def migrate(saved: StateInfo | None, declared: Declaration, operator: str = "") -> Migration | None:
    """Return the conversion of the restored entries of a state to its declaration, or None if they need none.

    Args:
        saved: The description in the checkpoint; None if it has no state of that name.
        declared: The declaration of the job.
        operator: The name of the operator, for messages.

    Raises:
        StateMigrationError: The entries cannot be converted; the message names the operator, the state and the
            difference.
    """
    check_restorable(saved, declared.info, operator)
    if saved is None:
        return None
    before, now = Described.decode(saved.schema, saved.name), declared.described()
    try:
        _check_keys(before, now)
        value = _value_converter(before, declared.value)
    except Incompatible as error:
        raise _refused(saved.name, operator, f"{error}. {_ADVICE}") from error
    declared.carry(before if value is None else replace(before, classes={}))
    return None if value is None else Migration(saved, value, operator)


_ADVICE = "Restore with the old declaration, or rename the state to start it empty"


class Migration:
    """Convert restored entries to the current declaration of a state."""

    def __init__(self, saved: StateInfo, value: Converter, operator: str) -> None:
        self._saved = saved
        self._operator = operator
        self._value = value
        one: Converter = (lambda stamped: (stamped[0], value(stamped[1]))) if saved.ttl else value
        self._entry = shape_of(saved.kind).converter(one)

    def value(self, kept: Any) -> Any:
        """Convert one kept value without a stamp: of value state, an element of a list, or a value of a map.

        Raises:
            StateMigrationError: The value does not fit the declaration.
        """
        return self._say(self._value, kept)

    def entry(self, entry: Any) -> Any:
        """Convert a whole entry: a value, a list or a map, with stamps if the state expires, or a window's contents.

        Raises:
            StateMigrationError: A value in the entry does not fit the declaration.
        """
        return self._say(self._entry, entry)

    def _say(self, convert: Converter, given: Any) -> Any:
        try:
            return convert(given)
        except (Incompatible, StateError) as error:
            raise _refused(self._saved.name, self._operator, f"{error}. {_ADVICE}") from error


def _refused(state: str, operator: str, why: str) -> StateMigrationError:
    of = f" of operator {operator}" if operator else ""
    return StateMigrationError(f"cannot restore state {state!r}{of}: {why}")


# ------------------------------------------------------------------------------------------------------------- checks


def _check_keys(before: Described, now: Described) -> None:
    """Refuse changed keys: they decide where state is and how it is found."""
    for what, old, new in (("key", before.key, now.key), ("map's key", before.map_key, now.map_key)):
        if old != new and PICKLED not in (old, new):
            raise Incompatible(f"the type of the {what} was {spell(old)} and is {spell(new)}; it cannot change")
    try:
        keys_changed = rebuilding(before.key_classes)
    except Incompatible as error:
        raise Incompatible(f"the class of its keys has changed: {error}") from error
    if keys_changed is not None:
        raise Incompatible(f"the class of its keys has changed: {keys_changed.difference()}; it cannot")


def _value_converter(before: Described, codec: Codec) -> Converter | None:
    """Return the converter from old kept values to kept values of the codec, or None if values need none."""
    old, new = before.value, codec.schema()
    if _is_serializer(old) or _is_serializer(new):
        return _between_serializers(old, new, codec)
    rebuilt = rebuilding(before.classes)
    convert = converter(old, new)
    to_be_checked = old == PICKLED and new != PICKLED
    if rebuilt is None and convert is None and not to_be_checked:
        return None
    load = PickledCodec("").loaded if rebuilt is None else _loading(rebuilt.loads)
    if convert is None:
        return lambda kept: codec.stored(load(kept))
    call = convert
    return lambda kept: codec.stored(call(load(kept)))


def _loading(loads: Callable[[bytearray], Any]) -> Converter:
    return lambda kept: loads(kept) if type(kept) is bytearray else kept


# -------------------------------------------------------------------------------------------------------- serializers


def _is_serializer(schema: Schema) -> bool:
    return isinstance(schema, dict) and "serializer" in schema


def _between_serializers(old: Schema, new: Schema, codec: Codec) -> Converter | None:
    if not (_is_serializer(old) and isinstance(codec, SerializerCodec)):
        raise changed(old, new)
    if old == new:
        return None
    snapshot = _read_snapshot(old["serializer"])
    answer = codec.serializer.snapshot_configuration().resolve_schema_compatibility(snapshot)
    match answer.kind:
        case "as is":
            return None
        case "reconfigured":
            assert answer.reconfigured is not None
            codec.serializer = answer.reconfigured
            return None
        case "after migration":
            return _rewriting(snapshot.restore_serializer(), codec)
        case _:
            why = f" ({answer.reason})" if answer.reason else ""
            raise Incompatible(
                f"{type(codec.serializer).__name__} reports that it cannot read what version "
                f"{old['serializer']['version']} of {spell(old)} wrote{why}"
            )


def _rewriting(reader: TypeSerializer[Any], codec: Codec) -> Converter:
    return lambda kept: None if kept is None else codec.stored(reader.deserialize(BytesIO(kept)))


def _read_snapshot(saved: dict[str, Any]) -> TypeSerializerSnapshot[Any]:
    name = str(saved["snapshot"])
    try:
        cls = find_global(*name.split(":"))
    except LookupError as error:
        raise Incompatible(
            f"the class {name.replace(':', '.')}, the snapshot of its serializer, no longer exists: {error}"
        ) from error
    # Only snapshot classes are called: a checkpoint must not be able to call any other class.
    if not (isinstance(cls, type) and issubclass(cls, TypeSerializerSnapshot)):
        raise Incompatible(f"{name.replace(':', '.')}, the snapshot of its serializer, is not a snapshot class")
    snapshot = cls()
    snapshot.read_snapshot(int(saved["version"]), BytesIO(base64.b64decode(saved["configuration"])))
    return snapshot
