"""Runs one program in an environment and describes the outcome, in the same way for PyFlink and for Ekorn.

An outcome is JSON-ready: {"outcome": "values" | "stdout" | "files" | "plan" | "facts" | "failure", ...}. A failure
says in which phase it happened ("build": while the job was drawn; "run": in `execute` or in the job), the type and
message of the Python exception, and on PyFlink the Java root cause. Messages are for readers and are never compared.
"""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.recorded.encoding import encode, without_addresses
from tests.recorded.program import Program


def run(program: Program, env: Any, take_stdout: Callable[[], list[str]]) -> dict[str, Any]:
    """Build and run a program; `take_stdout` returns the lines printed since its last call."""
    with tempfile.TemporaryDirectory() as directory:
        take_stdout()
        try:
            built = program.build(env, directory) if program.result == "files" else program.build(env)
        except Exception as problem:
            return _failure("build", problem)
        try:
            return _RESULTS[program.result](env, built, directory, take_stdout)
        except Exception as problem:
            return _failure("run", problem)


def differences(recorded: dict[str, Any], found: dict[str, Any], ordered: bool) -> list[str]:
    """Return the differences of two outcomes in words; empty if they agree."""
    if recorded["outcome"] != found["outcome"]:
        return [f"recorded a {recorded['outcome']} outcome, found {found}"]
    kind = recorded["outcome"]
    if kind == "failure":
        return _failure_differences(recorded, found)
    if kind in ("plan", "facts") or ordered:
        same = recorded[kind] == found[kind]
    else:
        same = Counter(recorded[kind]) == Counter(found[kind])
    return [] if same else [f"recorded {recorded[kind]!r}", f"found {found[kind]!r}"]


def _failure_differences(recorded: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Compare failures: an error may come earlier and be more specific than in PyFlink, but not later or different."""
    different = []
    if recorded["phase"] == "build" and found["phase"] != "build":
        different.append(f"recorded a failure while building, found {found}")
    if recorded["error"] not in (*_UNTELLING, found["error"]):
        different.append(f"recorded {recorded['error']}, found {found}")
    return different


_UNTELLING = (None, "Exception", "Py4JError", "AttributeError")  # None: the failure was in Java alone


def _values(env: Any, stream: Any, directory: str, take_stdout: Callable[[], list[str]]) -> dict[str, Any]:
    with stream.execute_and_collect() as records:
        return {"outcome": "values", "values": [encode(record) for record in records]}


def _stdout(env: Any, built: Any, directory: str, take_stdout: Callable[[], list[str]]) -> dict[str, Any]:
    env.execute()
    return {"outcome": "stdout", "stdout": take_stdout()}


def _files(env: Any, built: Any, directory: str, take_stdout: Callable[[], list[str]]) -> dict[str, Any]:
    env.execute()
    paths = sorted(path for path in Path(directory).rglob("*") if path.is_file())
    assert not any(".inprogress" in path.name for path in paths), paths
    lines = [line for path in paths for line in path.read_text("utf-8").splitlines()]
    return {"outcome": "files", "files": [without_addresses(line) for line in lines]}


def _plan(env: Any, built: Any, directory: str, take_stdout: Callable[[], list[str]]) -> dict[str, Any]:
    return {"outcome": "plan", "plan": _numbered_anew(json.loads(env.get_execution_plan()))}


def _numbered_anew(plan: dict[str, Any]) -> dict[str, Any]:
    """Number the operators from 1 in the order of the plan; PyFlink numbers all operators of the process."""
    numbers = {node["id"]: number for number, node in enumerate(plan["nodes"], start=1)}
    for node in plan["nodes"]:
        node["id"] = numbers[node["id"]]
        for predecessor in node.get("predecessors", []):
            predecessor["id"] = numbers[predecessor["id"]]
    return plan


def _facts(env: Any, built: Any, directory: str, take_stdout: Callable[[], list[str]]) -> dict[str, Any]:
    return {"outcome": "facts", "facts": [encode(fact) for fact in built]}


_RESULTS = {"values": _values, "stdout": _stdout, "files": _files, "plan": _plan, "facts": _facts}


def _failure(phase: str, problem: Exception) -> dict[str, Any]:
    text = str(problem)
    error: str | None
    error, message = type(problem).__name__, text
    found: dict[str, Any] = {"outcome": "failure", "phase": phase}
    java = _java_root_cause(text)
    if java is not None:
        # The failure of a job is one Java exception; its text holds the Python traceback of a worker that raised.
        error, message = _python_cause(text) or (None, "")
    found |= {"error": error, "message": _one_line(message)}
    if java is not None:
        found |= {"java": java[0], "java_message": _one_line(java[1])}
    return found


def _java_root_cause(text: str) -> tuple[str, str] | None:
    causes = re.findall(r"^(?:: |Caused by: )((?:[\w$]+\.)+[\w$]+)(?:: (.*))?$", text, re.MULTILINE)
    return causes[-1] if causes else None


def _python_cause(text: str) -> tuple[str, str] | None:
    """Return the type and message below the last Python traceback, or None."""
    _, traceback, after = text.rpartition("Traceback (most recent call last):")
    if not traceback:
        return None
    for line in after.splitlines()[1:]:
        if line and not line.startswith((" ", "\t")):
            name, _, message = line.partition(": ")
            return name.rpartition(".")[2], message
    return None


def _one_line(message: str) -> str:
    return without_addresses(message.strip().splitlines()[0])[:300] if message.strip() else ""
