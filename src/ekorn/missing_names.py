"""Imports of names that PyFlink has and ekorn lacks: the error says what to use instead.

`ekorn/__init__.py` puts `MissingNames` behind all other finders, so it is asked only for modules that do not exist.
For `from ekorn.common import Name`, Python asks a package that has no such name for a module `ekorn.common.Name`.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType

_JVM = "there is no JVM behind Ekorn's API: leave out calls of get_gateway() and uses of _j_... attributes"
_OWN_SOURCES_AND_SINKS = (
    "for other systems, extend SourceFunction and SinkFunction of {root}.datastream.functions in Python, "
    "or TwoPhaseCommitSinkFunction for a sink that writes every record once"
)

# By path below the root package; the longest matching path counts.
_INSTEAD = {
    "table": (
        "Ekorn has the DataStream API: create streams with env.from_collection, from_source and add_source, "
        "and use Spark for tables and SQL"
    ),
    "java_gateway": _JVM,
    "pyflink_gateway_server": _JVM,
    "util": _JVM,
    "util.exceptions": "errors of Ekorn are in ekorn.errors",
    "fn_execution": "it is internal to PyFlink's workers and not part of its API",
    "testing": "tests of functions and pipelines use ekorn.testing",
    "shell": "use an ordinary Python shell, after `from ekorn.datastream import *`",
    "datastream.connectors": _OWN_SOURCES_AND_SINKS,
    "datastream.connectors.elasticsearch": (
        "extend SinkFunction of {root}.datastream.functions around the client elasticsearch: give every document "
        "an id, so that a repeated write is harmless, and flush in snapshot_state; or use JdbcSink"
    ),
    "datastream.connectors.pulsar": (
        "use KafkaSource and KafkaSink with Pulsar's handler of the Kafka protocol, or extend SourceFunction and "
        "SinkFunction of {root}.datastream.functions around pulsar-client"
    ),
    "datastream.connectors.kinesis": (
        "use KafkaSource and KafkaSink, or extend SourceFunction and SinkFunction of {root}.datastream.functions "
        "around boto3, with the sequence number of each shard as the state of a CheckpointedFunction"
    ),
    "datastream.connectors.cassandra": (
        "use JdbcSink with PostgreSQL, or extend SinkFunction of {root}.datastream.functions around cassandra-driver, "
        "whose inserts may be repeated, and flush in snapshot_state"
    ),
    "datastream.formats": "read and write text or bytes, and convert them in a map",
}

# The modules searched for a name that was imported from the wrong module.
_PUBLIC_MODULES = ("common", "datastream", "datastream.functions", "datastream.window", "datastream.state")
_PACKAGES = ("client", "common", "dataset", "datastream", "errors", "queryable", "state_processor", "testing")
_PUBLIC_PACKAGES = {"common", "datastream", "metrics", "util"} | {path.partition(".")[0] for path in _INSTEAD}


class MissingNames(MetaPathFinder):
    """Refuses modules and names at PyFlink's paths that ekorn does not have."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise the error for a missing name at a public path; return None for any other name."""
        parent, _, name = fullname.rpartition(".")
        if not parent.startswith("ekorn") or name.startswith("_"):
            return None
        package = fullname.split(".")[1]
        if package in _PUBLIC_PACKAGES:
            raise missing_name_error(fullname, sys.modules.get(parent))
        meant = difflib.get_close_matches(package, _PACKAGES, 1, 0.8)
        if parent == "ekorn" and meant:
            raise _error(f"Ekorn has no {fullname}; did you mean ekorn.{meant[0]}?", fullname)
        return None


def missing_name_error(fullname: str, siblings: ModuleType | None) -> ModuleNotFoundError:
    """Return the error for an import of a name that ekorn does not have; a finder raises it.

    Its `name` is the module's, as with every missing module. A `from` import cannot have it: Python takes an error with
    a name for "not a module", and replaces it by an error without this message.

    Args:
        fullname: The name, with its path from `pyflink` or `ekorn` on.
        siblings: The module of ekorn that would hold the name, if there is one.
    """
    return _error(missing_name_message(fullname, siblings), fullname)


def _error(message: str, fullname: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(message) if _is_from_import() else ModuleNotFoundError(message, name=fullname)


def _is_from_import() -> bool:
    """Return whether Python looks for the module because of a name after `from ... import`.

    A finder is not told so. The frames of Python's import system are called by the program and call the finder; one
    function of theirs handles the names of a `from` import.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_of_import_system(frame):
        frame = frame.f_back
    while frame is not None and _is_of_import_system(frame):
        if frame.f_code.co_name == "_handle_fromlist":
            return True
        frame = frame.f_back
    return False


def _is_of_import_system(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith("<frozen importlib")


def missing_name_message(fullname: str, siblings: ModuleType | None) -> str:
    """Return the error message for an import of a name that ekorn does not have.

    Args:
        fullname: The name, with its path from `pyflink` or `ekorn` on.
        siblings: The module of ekorn that would hold the name, if there is one.
    """
    said = f"Ekorn has no {fullname}"
    root = fullname.partition(".")[0]
    parent, _, name = fullname.rpartition(".")
    elsewhere = [module for module in _PUBLIC_MODULES if hasattr(importlib.import_module(f"ekorn.{module}"), name)]
    if elsewhere:
        return f"{said}; {root}.{elsewhere[0]} has {name}"
    close = difflib.get_close_matches(name, _public(siblings), 3, 0.75)
    if close:
        return f"{said}; {parent} has {' and '.join(close)}"
    hint = _hint(fullname.partition(".")[2])
    return f"{said}; {hint.format(root=root)}" if hint else f"{said}, and nothing like it in {parent}"


def _public(module: ModuleType | None) -> list[str]:
    return [name for name in vars(module) if not name.startswith("_")] if module is not None else []


def _hint(path: str) -> str | None:
    while path:
        if path in _INSTEAD:
            return _INSTEAD[path]
        path, _, _ = path.rpartition(".")
    return None
