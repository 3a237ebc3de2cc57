"""`NullableSerializer`: None beside the values of a serializer that cannot write it."""

from __future__ import annotations

import struct
from io import BytesIO

import pytest

from ekorn.common import Time, Types
from ekorn.common.serializer import (
    NullableSerializer,
    NullableSerializerSnapshot,
    SimpleTypeSerializerSnapshot,
    TypeSerializer,
)
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.state import MapStateDescriptor, StateTtlConfig
from ekorn.testing.local_run import collect_locally


class Numbers(TypeSerializer):
    """Writes numbers in four bytes, and nothing else."""

    def serialize(self, element, stream):
        stream.write(struct.pack(">i", element))

    def deserialize(self, stream):
        return struct.unpack(">i", stream.read(4))[0]

    def get_length(self):
        return 4


class Texts(TypeSerializer):
    def serialize(self, element, stream):
        stream.write(f"{element}\n".encode())

    def deserialize(self, stream):
        return stream.readline().decode().removesuffix("\n")


class TextsOrNone(Texts):
    def deserialize(self, stream):
        found = super().deserialize(stream)
        return None if found == "None" else found


def written(serializer, *values):
    stream = BytesIO()
    for value in values:
        serializer.serialize(value, stream)
    return stream.getvalue()


def read(serializer, content, count):
    stream = BytesIO(content)
    return [serializer.deserialize(stream) for _ in range(count)]


@pytest.mark.parametrize("padded", [False, True])
def test_none_is_written_beside_values(padded):
    serializer = NullableSerializer.wrap(Numbers(), padded)
    content = written(serializer, 7, None, -1, None)
    assert read(serializer, content, 4) == [7, None, -1, None]
    assert len(content) == (20 if padded else 12)
    with pytest.raises(struct.error):
        written(Numbers(), None)


def test_values_of_no_fixed_length_are_not_padded():
    assert written(NullableSerializer.wrap(Texts(), True), None) == b"\1"


def test_what_has_room_for_none_is_not_wrapped():
    once = NullableSerializer.wrap(Numbers())
    assert NullableSerializer.wrap(once) is once
    assert NullableSerializer.wrap(Types.STRING()) == Types.STRING()
    texts = TextsOrNone()
    assert NullableSerializer.wrap_if_null_is_not_supported(texts) is texts
    assert isinstance(NullableSerializer.wrap_if_null_is_not_supported(Texts()), NullableSerializer)
    assert isinstance(NullableSerializer.wrap_if_null_is_not_supported(Numbers()), NullableSerializer)
    with pytest.raises(TypeError, match="takes a TypeSerializer, got 'STRING'"):
        NullableSerializer.wrap("STRING")  # type: ignore[call-overload]


def restored(serializer):
    """Return the snapshot of a serializer, as a restore reads it from a checkpoint."""
    snapshot, stream = serializer.snapshot_configuration(), BytesIO()
    snapshot.write_snapshot(stream)
    found = NullableSerializerSnapshot()
    found.read_snapshot(snapshot.get_current_version(), BytesIO(stream.getvalue()))
    return found


class NumbersSnapshot(SimpleTypeSerializerSnapshot):
    """Restores its serializer, as one with migrations does."""

    def __init__(self):
        super().__init__(Numbers)


class KnownNumbers(Numbers):
    def snapshot_configuration(self):
        return NumbersSnapshot()


def test_the_wrapped_serializer_decides_what_can_be_read():
    plain, padded = NullableSerializer.wrap(KnownNumbers()), NullableSerializer.wrap(KnownNumbers(), True)
    judge = plain.snapshot_configuration().resolve_schema_compatibility
    assert judge(restored(plain)).kind == "as is"
    assert judge(restored(padded)).kind == "after migration"
    assert judge(restored(NullableSerializer.wrap(Texts()))).kind == "incompatible"
    unwrapped = judge(Numbers().snapshot_configuration())
    assert (unwrapped.kind, unwrapped.reason) == ("incompatible", "it was written without a NullableSerializer")
    old = restored(padded).restore_serializer()
    assert read(old, written(padded, None, 5), 2) == [None, 5]


def test_a_snapshot_calls_no_other_class():
    with pytest.raises(TypeError, match="not a snapshot of a serializer"):
        NullableSerializerSnapshot().read_snapshot(1, BytesIO(b"0 1 subprocess:Popen\n"))


class RemembersNone(KeyedProcessFunction):
    def __init__(self, value_type):
        self.value_type = value_type

    def open(self, runtime_context):
        descriptor = MapStateDescriptor("seen", Types.STRING(), self.value_type)
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.seen = runtime_context.get_map_state(descriptor)

    def process_element(self, value, ctx):
        self.seen.put(value, None)
        yield sorted(self.seen.keys()), self.seen.contains(value), self.seen.get(value)


@pytest.mark.parametrize(
    "value_type", [Types.INT(), Numbers(), NullableSerializer.wrap(Numbers())], ids=["type", "serializer", "wrapped"]
)
def test_a_map_with_time_to_live_holds_none(value_type):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    found = env.from_collection(["a", "b"]).key_by(lambda value: 0).process(RemembersNone(value_type))
    assert collect_locally(found) == [(["a"], True, None), (["a", "b"], True, None)]
