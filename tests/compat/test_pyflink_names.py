"""PyFlink's public names and signatures exist at the same paths; every exception is listed here with its reason.

A name is written ``module``, ``module:Name`` or ``module:Class.member``. An excepted name that exists fails the test,
so the lists cannot grow stale.
"""

from __future__ import annotations

import enum
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

from tests.compat.listing import Parameter, read_listing

MODULES = read_listing()

CACHED_STREAMS = """
ekorn.datastream.data_stream:DataStream.cache
"""
NOT_YET = frozenset(CACHED_STREAMS.split())

BRIDGE = "hands out or takes a Java object; there is no JVM behind these classes"
NOT_OFFERED = {
    "ekorn.common.typeinfo:TypeInformation.get_java_type_info": BRIDGE,
    "ekorn.common.types:RowKind.to_j_row_kind": BRIDGE,
    "ekorn.datastream.formats.avro:GenericRecordAvroTypeInfo.get_java_type_info": BRIDGE,
    "ekorn.datastream.output_tag:OutputTag.get_java_output_tag": BRIDGE,
    "ekorn.datastream.slot_sharing_group:MemorySize.get_java_memory_size": BRIDGE,
    "ekorn.datastream.slot_sharing_group:SlotSharingGroup.get_java_slot_sharing_group": BRIDGE,
    "ekorn.datastream.utils:convert_to_python_obj": BRIDGE,
    "ekorn.datastream.utils:pickled_bytes_to_python_obj": BRIDGE,
    "ekorn.datastream.utils:create_hadoop_configuration": BRIDGE,
    "ekorn.datastream.utils:create_java_properties": BRIDGE,
    "ekorn.datastream:CustomCheckpointStorage": BRIDGE,
    "ekorn.datastream:CustomStateBackend": BRIDGE,
    "ekorn.datastream.checkpoint_storage:CustomCheckpointStorage": BRIDGE,
    "ekorn.datastream.state_backend:CustomStateBackend": BRIDGE,
    "ekorn.datastream.functions:AsyncFunctionDescriptor": "how PyFlink hands an async function to its own operator",
    "ekorn.util.exceptions": "translates Java exceptions; ours are in ekorn.errors",
}

DIFFERENT_SIGNATURES = {
    "ekorn.datastream.stream_execution_environment:StreamExecutionEnvironment.execute_async": (
        "a job without a name is not called after Flink"
    ),
    "ekorn.datastream.slot_sharing_group:MemorySize.__init__": "a size without a number has no meaning",
    "ekorn.datastream.functions:SinkFunction.__init__": "names a Java class there; a class to extend here",
    "ekorn.datastream.functions:SourceFunction.__init__": "names a Java class there; a class to extend here",
    "ekorn.datastream.connectors.base:Sink.__init__": "names a Java class there; a class to extend here",
    "ekorn.datastream.connectors.base:Source.__init__": "names a Java class there; a class to extend here",
}

ENTRIES = [(module, entry) for module, entries in MODULES.items() for entry in entries.values()]
EXCEPTED = NOT_YET | NOT_OFFERED.keys()


def test_the_listing_was_read():
    assert len(MODULES) >= 50
    assert len(ENTRIES) >= 300
    assert sum(len(entry.members) for _, entry in ENTRIES) >= 800


def test_every_name_of_pyflink_is_here() -> None:
    missing = [name for name in wanted_names() if not exists(name)]
    assert not missing, "missing names:\n" + "\n".join(missing)


def test_every_signature_takes_the_calls_that_pyflinks_takes() -> None:
    problems = []
    for name, theirs in wanted_signatures():
        if not exists(name):
            continue  # the test above reports it
        problem = difference(theirs, found(name))
        if name in DIFFERENT_SIGNATURES and problem is None:
            problems.append(f"{name} does not differ any more: remove it from DIFFERENT_SIGNATURES")
        elif name not in DIFFERENT_SIGNATURES and problem is not None:
            problems.append(f"{name}: {problem}")
    assert not problems, "\n".join(problems)


def test_every_excepted_name_is_missing() -> None:
    here = [name for name in sorted(EXCEPTED) if exists(name)]
    assert not here, "these names exist now, remove them from the list of exceptions:\n" + "\n".join(here)


def test_every_excepted_name_is_one_of_pyflinks() -> None:
    foreign = [name for name in sorted(EXCEPTED | DIFFERENT_SIGNATURES.keys()) if not is_listed(name)]
    assert not foreign, "PyFlink has no such names:\n" + "\n".join(foreign)


def wanted_names() -> Iterator[str]:
    """Yield every name of PyFlink that is not excepted, by itself or with its module or class."""
    for module, entry in ENTRIES:
        name = f"{module}:{entry.name}"
        if module in EXCEPTED or name in EXCEPTED:
            continue
        yield name
        yield from (f"{name}.{member}" for member in entry.members if f"{name}.{member}" not in EXCEPTED)


def wanted_signatures() -> Iterator[tuple[str, tuple[Parameter, ...]]]:
    """Yield every function and method of PyFlink that is not excepted, with its parameters."""
    signatures: dict[str, tuple[Parameter, ...] | None] = {}
    for module, entry in ENTRIES:
        name = f"{module}:{entry.name}"
        signatures |= {name: entry.signature} | {f"{name}.{member}": each for member, each in entry.members.items()}
    for name in wanted_names():
        parameters = signatures[name]
        if parameters is not None:
            yield name, parameters


def is_listed(name: str) -> bool:
    module, _, path = name.partition(":")
    outer, _, member = path.partition(".")
    entries = MODULES.get(module)
    if entries is None or not outer:
        return entries is not None
    return outer in entries and (not member or member in entries[outer].members)


def found(name: str) -> Any:
    module, _, path = name.partition(":")
    thing: Any = importlib.import_module(module)
    for part in path.split(".") if path else ():
        thing = getattr(thing, part)
    return thing


def exists(name: str) -> bool:
    try:
        found(name)
    except (ImportError, AttributeError):
        return False
    return True


def difference(theirs: tuple[Parameter, ...], ours: Any) -> str | None:
    """Return why a call that PyFlink takes would be refused here, or mean something else; None if neither is so."""
    if any(p.belongs_to_the_bridge and p.default is None for p in theirs):
        return None  # only PyFlink makes such an object, never a program
    wanted = [p for p in theirs if not p.belongs_to_the_bridge]
    given = list(own_parameters(ours))
    for position, parameter in enumerate(wanted):
        if position >= len(given):
            return f"{parameter.name} is missing"
        mine = given[position]
        stars = "*" if mine.kind is mine.VAR_POSITIONAL else "**" if mine.kind is mine.VAR_KEYWORD else ""
        if stars + mine.name != parameter.name:
            return f"parameter {position} is called {parameter.name} there and {stars}{mine.name} here"
        spelled = (default_text(mine.default), repr(mine.default))  # the listing has enums in both spellings
        if parameter.default is not None and parameter.default not in spelled:
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
