"""The values that a state of a declared type accepts, and serializers of the program."""

from dataclasses import dataclass, field, replace
from io import BytesIO

import pytest

from ekorn.common import Row, Types, TypeSerializer, TypeSerializerSchemaCompatibility, TypeSerializerSnapshot
from ekorn.datastream.formats.avro import AvroSchema, GenericRecordAvroTypeInfo
from ekorn.errors import StateError, StateMigrationError
from ekorn.functions.state.state_descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from ekorn.state.evolution.type_descriptions import describe, spell
from ekorn.state.operator_state import OperatorStates
from tests.state.backends import BACKENDS
from tests.state.evolving import evolve, restored, snapshot_of

ROW = Types.ROW_NAMED
PERSON = ROW(["name", "age"], [Types.STRING(), Types.INT()])


# ------------------------------------------------------------------------------------------- serializers of one's own


class PointSerializer(TypeSerializer):
    """Write points as text, with a configured separator."""

    def __init__(self, separator=","):
        self.separator = separator

    def serialize(self, element, stream):
        stream.write(self.separator.join(map(str, element)).encode())

    def deserialize(self, stream):
        return tuple(int(part) for part in stream.read().decode().split(self.separator))

    def snapshot_configuration(self):
        return PointSnapshot(self.separator)


class PointSnapshot(TypeSerializerSnapshot):
    answers = TypeSerializerSchemaCompatibility.compatible_after_migration

    def __init__(self, separator=None):
        self.separator = separator

    def get_current_version(self):
        return 2

    def write_snapshot(self, stream):
        stream.write(self.separator.encode())

    def read_snapshot(self, read_version, stream):
        assert read_version == 2
        self.separator = stream.read().decode()

    def restore_serializer(self):
        return PointSerializer(self.separator)

    def resolve_schema_compatibility(self, old_serializer_snapshot):
        if old_serializer_snapshot.separator == "!":
            return TypeSerializerSchemaCompatibility.incompatible("nobody knows what '!' meant")
        if self.separator == "any":
            return TypeSerializerSchemaCompatibility.compatible_with_reconfigured_serializer(
                PointSerializer(old_serializer_snapshot.separator)
            )
        return TypeSerializerSchemaCompatibility.compatible_after_migration()


class Plain(TypeSerializer):
    def serialize(self, element, stream):
        stream.write(element.encode())

    def deserialize(self, stream):
        return stream.read().decode()


class Other(Plain):
    pass


@pytest.mark.parametrize("backend", ["heap", "rocksdb"])
def test_state_is_written_through_its_serializer(backend):
    before = BACKENDS[backend]()
    before.cell[0] = "key"
    before.state(ValueStateDescriptor("value", PointSerializer())).update((1, 2))
    before.state(ListStateDescriptor("list", PointSerializer())).add_all([(3, 4), (5, 6)])
    before.state(MapStateDescriptor("map", PointSerializer(), Plain())).put_all({(7, 8): "x", (9, 9): None})
    after = restored(snapshot_of(before), backend)
    after.cell[0] = "key"
    assert after.state(ValueStateDescriptor("value", PointSerializer())).value() == (1, 2)
    assert list(after.state(ListStateDescriptor("list", PointSerializer()))) == [(3, 4), (5, 6)]
    points = after.state(MapStateDescriptor("map", PointSerializer(), Plain()))
    assert dict(points.items()) == {(7, 8): "x", (9, 9): None}
    assert points.get((7, 8)) == "x" and (9, 9) in points and sorted(points.keys()) == [(7, 8), (9, 9)]
    points.remove((7, 8))
    assert list(points) == [(9, 9)]


def test_what_a_serializer_wrote_is_what_is_kept():
    backend = BACKENDS["heap"]()
    backend.cell[0] = "key"
    backend.state(ValueStateDescriptor("state", PointSerializer(";"))).update((1, 2))
    assert backend.heap.by_name["state"].data["key"] == bytearray(b"1;2")
    assert '"version": 2' in backend.infos()[0].schema


def test_a_serializer_reads_what_an_older_one_wrote_after_migration():
    assert evolve(PointSerializer(","), (1, 2), PointSerializer(";")) == (1, 2)


def test_a_serializer_may_go_on_as_the_older_one():
    before = BACKENDS["heap"]()
    before.cell[0] = "key"
    before.state(ValueStateDescriptor("state", PointSerializer("-"))).update((1, 2))
    after = restored(snapshot_of(before))
    after.cell[0] = "key"
    state = after.state(ValueStateDescriptor("state", PointSerializer("any")))
    assert state.value() == (1, 2)
    state.update((3, 4))
    assert after.heap.by_name["state"].data["key"] == bytearray(b"3-4")
    assert state.value() == (3, 4)


@pytest.mark.parametrize("backend", ["heap", "rocksdb"])
def test_a_serializer_that_goes_on_as_the_older_one_is_what_the_next_checkpoint_says(backend):
    before = BACKENDS[backend]()
    before.cell[0] = "key"
    before.state(ValueStateDescriptor("state", PointSerializer("-"))).update((1, 2))
    between = restored(snapshot_of(before), backend)
    between.state(ValueStateDescriptor("state", PointSerializer("any")))
    after = restored(snapshot_of(between), backend)
    after.cell[0] = "key"
    assert after.state(ValueStateDescriptor("state", PointSerializer("any"))).value() == (1, 2)


def test_operator_state_remembers_the_serializer_it_went_on_with():
    states = OperatorStates()
    states.get_list_state(ListStateDescriptor("split", PointSerializer("-"))).add((1, 2))
    for _ in range(2):
        states = OperatorStates(states.snapshot(), states.infos())
        assert list(states.get_list_state(ListStateDescriptor("split", PointSerializer("any")))) == [(1, 2)]


def test_a_serializer_that_says_no_is_believed():
    with pytest.raises(StateMigrationError, match="nobody knows what '!' meant"):
        evolve(PointSerializer("!"), (1, 2), PointSerializer(","))


def test_a_serializer_without_a_snapshot_of_its_own_is_its_class():
    assert evolve(Plain(), "text", Plain()) == "text"
    with pytest.raises(StateMigrationError, match=r"it was written by \S*\.Plain, not by \S*\.Other"):
        evolve(Plain(), "text", Other())


@pytest.mark.parametrize(("old", "new"), [(Plain(), Types.STRING()), (Types.STRING(), Plain()), (Plain(), None)])
def test_a_serializer_and_a_type_do_not_read_each_other(old, new):
    with pytest.raises(StateMigrationError, match="SimpleTypeSerializerSnapshot"):
        evolve(old, "text", new)


def test_a_snapshot_class_that_is_gone_is_named():
    before = BACKENDS["heap"]()
    before.state(ValueStateDescriptor("state", PointSerializer()))
    restore, store = snapshot_of(before)
    schema = restore.states[0].schema.replace("PointSnapshot", "Vanished")
    changed = replace(restore, states=(replace(restore.states[0], schema=schema),))
    with pytest.raises(StateMigrationError, match="Vanished, the snapshot of its serializer, no longer exists"):
        restored((changed, store)).state(ValueStateDescriptor("state", PointSerializer()))


def test_nothing_but_a_snapshot_class_is_called_by_its_name():
    before = BACKENDS["heap"]()
    before.state(ValueStateDescriptor("state", PointSerializer()))
    restore, store = snapshot_of(before)
    schema = restore.states[0].schema.replace(f"{__name__}:PointSnapshot", "os:abort")
    changed = replace(restore, states=(replace(restore.states[0], schema=schema),))
    with pytest.raises(StateMigrationError, match="abort, the snapshot of its serializer, is not a snapshot"):
        restored((changed, store)).state(ValueStateDescriptor("state", PointSerializer()))


def test_operator_state_is_written_through_its_serializer():
    states = OperatorStates()
    states.get_list_state(ListStateDescriptor("split", PointSerializer(","))).add((1, 2))
    states.get_broadcast_state(MapStateDescriptor("rules", PointSerializer(), Plain())).put((3, 4), "r")
    assert states.snapshot() == {"split": ("split", [b"1,2"]), "rules": ("broadcast", [(b"3,4", b"r")])}
    again = OperatorStates(states.snapshot(), states.infos())
    assert list(again.get_list_state(ListStateDescriptor("split", PointSerializer(";")))) == [(1, 2)]
    rules = again.get_broadcast_state(MapStateDescriptor("rules", PointSerializer(), Plain()))
    assert (dict(rules.items()), rules.get((3, 4)), list(rules)) == ({(3, 4): "r"}, "r", [(3, 4)])


def test_serializers_write_into_a_stream_that_is_theirs_alone():
    stream = BytesIO()
    PointSerializer().serialize((1, 2), stream)
    assert stream.getvalue() == b"1,2"


# -------------------------------------------------------------------------------------- what fits the declared type


@dataclass
class Visit:
    url: str
    tags: list = field(default_factory=list)


FITS = {
    "a number": (Types.LONG(), 5, 2**63),
    "text": (Types.STRING(), "a", 5),
    "a short number": (Types.BYTE(), 127, 128),
    "a fraction": (Types.DOUBLE(), 0.5, "0.5"),
    "a truth": (Types.BOOLEAN(), True, "True"),
    "a tuple": (Types.TUPLE([Types.INT(), Types.STRING()]), (1, "a"), ("a", 1)),
    "a tuple of another length": (Types.TUPLE([Types.INT(), Types.STRING()]), (1, "a"), (1,)),
    "a row": (PERSON, Row(name="a", age=1), ("a", 1)),
    "a list": (Types.LIST(Types.INT()), [1], ["a"]),
    "a map": (Types.MAP(Types.STRING(), Types.INT()), {"a": 1}, {"a": "b"}),
    "an instance": (Visit, Visit("/"), "/"),
}


@pytest.mark.parametrize("case", FITS)
def test_a_value_that_does_not_fit_the_declared_type_is_refused_when_it_is_written(case):
    type_info, good, bad = FITS[case]
    backend = BACKENDS["heap"]()
    backend.cell[0] = "key"
    value = backend.state(ValueStateDescriptor("value", type_info))  # type: ignore[arg-type]
    elements = backend.state(ListStateDescriptor("list", type_info))  # type: ignore[arg-type]
    entries = backend.state(MapStateDescriptor("map", Types.STRING(), type_info))  # type: ignore[arg-type]
    value.update(good)
    elements.add(good)
    entries.put("k", good)
    for call in (value.update, elements.add, lambda v: elements.add_all([good, v]), lambda v: entries.put("k", v)):
        with pytest.raises(StateError, match=r"is declared as .* and cannot hold"):
            call(bad)
    assert (value.value(), list(elements), dict(entries.items())) == (good, [good], {"k": good})


def test_a_key_of_a_map_that_does_not_fit_is_refused():
    backend = BACKENDS["heap"]()
    backend.cell[0] = "key"
    state = backend.state(MapStateDescriptor("map", Types.INT(), Types.INT()))
    state.put(1, None)
    with pytest.raises(StateError, match="'map' is declared as Integer and cannot hold 'a'"):
        state.put("a", 1)
    untyped = backend.state(MapStateDescriptor("other"))
    with pytest.raises(StateError, match="cannot be the key of a map, because a list is mutable"):
        untyped.put([1], 1)


def test_a_value_is_given_back_as_it_was_given():
    assert repr(evolve(Types.DOUBLE(), 1, Types.DOUBLE())) == "1"


@pytest.mark.parametrize(
    ("type_info", "text"),
    [
        (PERSON, "ROW(name STRING, age INT)"),
        (Types.MAP(Types.STRING(), Types.LIST(Types.SQL_DATE())), "MAP(STRING, LIST(SQL_DATE))"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), "PRIMITIVE_ARRAY(BYTE)"),
        (Types.POJO(Visit), f"{Visit.__module__}.Visit"),
        (GenericRecordAvroTypeInfo(AvroSchema.parse_string('{"type": "array", "items": "int"}')), "Avro array of int"),
        (None, "any"),
    ],
)
def test_types_in_words(type_info, text):
    assert spell(describe(type_info)) == text
