"""The message for an import of a PyFlink name that tamias does not have: what to use instead."""

from __future__ import annotations

import difflib
import importlib
from types import ModuleType

_JVM = "there is no JVM behind Tamias' API: leave out calls of get_gateway() and of _j_... attributes"
_OWN_SOURCES_AND_SINKS = (
    "for other systems, extend SourceFunction and SinkFunction of pyflink.datastream.functions in Python, "
    "or TwoPhaseCommitSinkFunction for a sink that writes every record once"
)

# By path; the longest matching path counts.
_INSTEAD = {
    "pyflink.table": (
        "Tamias has the DataStream API: make streams with env.from_collection, from_source and add_source, "
        "and ask Spark for tables and SQL"
    ),
    "pyflink.java_gateway": _JVM,
    "pyflink.pyflink_gateway_server": _JVM,
    "pyflink.util": _JVM,
    "pyflink.util.exceptions": "errors of Tamias are in tamias.errors",
    "pyflink.fn_execution": "it is internal to PyFlink's workers, not an API",
    "pyflink.testing": "tests of functions and pipelines use tamias.testing",
    "pyflink.shell": "an ordinary Python shell does, after `from tamias.datastream import *`",
    "pyflink.datastream.connectors": _OWN_SOURCES_AND_SINKS,
    "pyflink.datastream.formats": "read and write text or bytes, and convert them in a map",
}

# The modules searched for a name that was imported from the wrong module.
_PUBLIC_MODULES = ("common", "datastream", "datastream.functions", "datastream.window", "datastream.state")


def missing_name_message(fullname: str, siblings: ModuleType | None) -> str:
    """Return the error message for an import of a name that tamias does not have.

    Args:
        fullname: The name, with its path from `pyflink` on.
        siblings: The module of tamias that would hold the name, if there is one.
    """
    said = f"Tamias has no {fullname}"
    parent, _, name = fullname.rpartition(".")
    elsewhere = [module for module in _PUBLIC_MODULES if hasattr(importlib.import_module(f"tamias.{module}"), name)]
    if elsewhere:
        return f"{said}; pyflink.{elsewhere[0]} has {name}"
    close = difflib.get_close_matches(name, _public(siblings), 3, 0.75)
    if close:
        return f"{said}; {parent} has {' and '.join(close)}"
    hint = _hint(fullname)
    return f"{said}; {hint}" if hint else f"{said}, and nothing like it in {parent}"


def _public(module: ModuleType | None) -> list[str]:
    return [name for name in vars(module) if not name.startswith("_")] if module is not None else []


def _hint(fullname: str) -> str | None:
    path = fullname
    while path:
        if path in _INSTEAD:
            return _INSTEAD[path]
        path, _, _ = path.rpartition(".")
    return None
