"""PyFlink's public names and signatures are ours, at the same paths; every exception is listed here with its reason.

A name is written ``module``, ``module:Name`` or ``module:Class.member``. The lists only shrink by being right: a
name that is listed and exists fails the test.
"""

from __future__ import annotations

import enum
import importlib
import inspect
from typing import Any

import pytest

from tests.compat.listing import Entry, Parameter, read_listing

MODULES = read_listing()

CACHED_STREAMS = """
tamias.datastream.data_stream:DataStream.cache
"""
CONNECTORS = """
tamias.datastream.connectors.kafka tamias.datastream.connectors.jdbc tamias.datastream.connectors.hybrid_source
tamias.datastream.connectors.file_system:FileCompactStrategy tamias.datastream.connectors.file_system:FileCompactor
tamias.datastream.connectors.file_system:BulkFormat
tamias.datastream.connectors.file_system:FileSink.for_bulk_format
tamias.datastream.connectors.file_system:StreamingFileSink.for_bulk_format
tamias.datastream.connectors.file_system:FileSource.for_bulk_file_format
tamias.datastream.formats.json tamias.datastream.formats.csv
tamias.datastream.formats.avro:AvroBulkWriters tamias.datastream.formats.avro:AvroInputFormat
tamias.datastream.formats.avro:AvroRowDeserializationSchema tamias.datastream.formats.avro:AvroRowSerializationSchema
tamias.datastream.formats.parquet tamias.datastream.formats.orc
tamias.datastream.stream_execution_environment:StreamExecutionEnvironment.create_input
"""
NOT_YET = frozenset((CACHED_STREAMS + CONNECTORS).split())

BRIDGE = "hands out or takes a Java object; there is no JVM behind these classes"
NOT_OFFERED = {
    "tamias.common.typeinfo:TypeInformation.get_java_type_info": BRIDGE,
    "tamias.common.types:RowKind.to_j_row_kind": BRIDGE,
    "tamias.datastream.formats.avro:GenericRecordAvroTypeInfo.get_java_type_info": BRIDGE,
    "tamias.datastream.output_tag:OutputTag.get_java_output_tag": BRIDGE,
    "tamias.datastream.slot_sharing_group:MemorySize.get_java_memory_size": BRIDGE,
    "tamias.datastream.slot_sharing_group:SlotSharingGroup.get_java_slot_sharing_group": BRIDGE,
    "tamias.datastream.utils:convert_to_python_obj": BRIDGE,
    "tamias.datastream.utils:pickled_bytes_to_python_obj": BRIDGE,
    "tamias.datastream.utils:create_hadoop_configuration": BRIDGE,
    "tamias.datastream.utils:create_java_properties": BRIDGE,
    "tamias.datastream:CustomCheckpointStorage": BRIDGE,
    "tamias.datastream:CustomStateBackend": BRIDGE,
    "tamias.datastream.checkpoint_storage:CustomCheckpointStorage": BRIDGE,
    "tamias.datastream.state_backend:CustomStateBackend": BRIDGE,
    "tamias.datastream.functions:AsyncFunctionDescriptor": "how PyFlink hands an async function to its own operator",
    "tamias.util.exceptions": "translates Java exceptions; ours are in tamias.errors",
}

DIFFERENT_SIGNATURES = {
    "tamias.datastream.stream_execution_environment:StreamExecutionEnvironment.execute_async": (
        "a job without a name is not called after Flink"
    ),
    "tamias.datastream.slot_sharing_group:MemorySize.__init__": "a size without a number has no meaning",
    "tamias.datastream.functions:SinkFunction.__init__": "names a Java class there; a class to extend here",
    "tamias.datastream.functions:SourceFunction.__init__": "names a Java class there; a class to extend here",
    "tamias.datastream.connectors.base:Sink.__init__": "names a Java class there; a class to extend here",
    "tamias.datastream.connectors.base:Source.__init__": "names a Java class there; a class to extend here",
}

ENTRIES = [(module, entry) for module, entries in MODULES.items() for entry in entries.values()]
MEMBERS = [
    (module, entry, member, signature)
    for module, entry in ENTRIES
    for member, signature in {**entry.members, "": entry.signature}.items()
    if member or signature is not None
]


def is_excepted(*names: str) -> bool:
    return any(name in NOT_YET or name in NOT_OFFERED for name in names)


def found(module: str, *path: str) -> Any:
    thing = importlib.import_module(module)
    for name in path:
        thing = getattr(thing, name)
    return thing


def exists(name: str) -> bool:
    module, _, path = name.partition(":")
    try:
        found(module, *(path.split(".") if path else ()))
    except (ImportError, AttributeError):
        return False
    return True


@pytest.mark.parametrize(("module", "entry"), ENTRIES, ids=[f"{m}:{e.name}" for m, e in ENTRIES])
def test_the_name_is_here(module: str, entry: Entry) -> None:
    name = f"{module}:{entry.name}"
    if is_excepted(module, name):
        return
    ours = found(module, entry.name)
    for member in entry.members:
        if not is_excepted(f"{name}.{member}"):
            assert hasattr(ours, member), f"{name} has no {member}"


@pytest.mark.parametrize(
    ("module", "entry", "member", "theirs"), MEMBERS, ids=[f"{m}:{e.name}.{n}".rstrip(".") for m, e, n, _ in MEMBERS]
)
def test_the_signature_takes_the_same_calls(
    module: str, entry: Entry, member: str, theirs: tuple[Parameter, ...] | None
) -> None:
    name = f"{module}:{entry.name}" + (f".{member}" if member else "")
    if theirs is None or is_excepted(module, f"{module}:{entry.name}", name):
        return
    problem = difference(theirs, found(module, entry.name, *([member] if member else [])))
    if name in DIFFERENT_SIGNATURES:
        assert problem is not None, f"{name} does not differ any more: take it off the list"
    else:
        assert problem is None, f"{name}: {problem}"


def difference(theirs: tuple[Parameter, ...], ours: Any) -> str | None:
    """Why a call that PyFlink takes could be refused here, or mean something else; None when it cannot."""
    if any(p.belongs_to_the_bridge and p.default is None for p in theirs):
        return None  # such an object is made by PyFlink, never by a program
    wanted = [p for p in theirs if not p.belongs_to_the_bridge]
    given = list(own_parameters(ours))
    for position, parameter in enumerate(wanted):
        if position >= len(given):
            return f"{parameter.name} is missing"
        mine = given[position]
        stars = {mine.VAR_POSITIONAL: "*", mine.VAR_KEYWORD: "**"}.get(mine.kind, "")
        if stars + mine.name != parameter.name:
            return f"parameter {position} is called {parameter.name} there and {stars}{mine.name} here"
        if parameter.default is not None and default_text(mine.default) != parameter.default:
            return f"{parameter.name} is {parameter.default} by default there and {default_text(mine.default)} here"
    for mine in given[len(wanted) :]:
        if mine.default is mine.empty and mine.kind not in (mine.VAR_POSITIONAL, mine.VAR_KEYWORD):
            return f"{mine.name} must be given here"
    return None


def own_parameters(ours: Any) -> list[inspect.Parameter]:
    signature = inspect.signature(ours)
    return [p for p in signature.parameters.values() if p.name not in ("self", "cls")]


def default_text(default: Any) -> str | None:
    if default is inspect.Parameter.empty:
        return None
    return str(default) if isinstance(default, enum.Enum) else repr(default)


@pytest.mark.parametrize("name", sorted(NOT_YET | NOT_OFFERED.keys()))
def test_an_excepted_name_is_really_missing(name: str) -> None:
    assert not exists(name), f"{name} is here now: take it off the list"


@pytest.mark.parametrize("name", sorted(NOT_YET | NOT_OFFERED.keys() | DIFFERENT_SIGNATURES.keys()))
def test_an_excepted_name_is_one_of_pyflinks(name: str) -> None:
    module, _, path = name.partition(":")
    assert module in MODULES
    if path:
        outer, _, member = path.partition(".")
        assert outer in MODULES[module]
        assert not member or member in MODULES[module][outer].members
