"""Reads the listing of PyFlink's public names: modules, classes, their members, and signatures."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

LISTING = Path(__file__).parent / "pyflink_api.txt"

_MODULE = re.compile(r"(ekorn[\w.]*)$")
_REEXPORT = re.compile(r"  (\w+): re-export of ")
_CLASS = re.compile(r"  class (\w+)\(")
_FUNCTION = re.compile(r"  def (\w+)(\(.*)$")
_METHOD = re.compile(r"    (?:static |classmethod )?(\w+)(\(.*)$")
_ATTRIBUTE = re.compile(r"    (\w+)$")


@dataclass(frozen=True)
class Parameter:
    """A parameter: its name with its stars, and its default as text."""

    name: str
    default: str | None = None

    @property
    def belongs_to_the_bridge(self) -> bool:
        """Return whether the parameter exists only for PyFlink's connection to the JVM."""
        return self.name == "gateway" or self.name.lstrip("_").startswith("j_")


@dataclass(frozen=True)
class Entry:
    """A class, function or re-exported name of a module; a class has members."""

    name: str
    kind: str
    signature: tuple[Parameter, ...] | None = None
    members: dict[str, tuple[Parameter, ...] | None] = field(default_factory=dict)  # None: no method


def read_listing() -> dict[str, dict[str, Entry]]:
    """Return every module with its entries."""
    modules: dict[str, dict[str, Entry]] = {}
    module: dict[str, Entry] = {}
    current: Entry | None = None
    for line in LISTING.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if match := _MODULE.match(line):
            module = modules.setdefault(match[1], {})
        elif match := _REEXPORT.match(line):
            module[match[1]] = Entry(match[1], "re-export")
        elif match := _CLASS.match(line):
            current = module.setdefault(match[1], Entry(match[1], "class"))
        elif match := _FUNCTION.match(line):
            module[match[1]] = Entry(match[1], "function", parameters(match[2]))
        elif (match := _METHOD.match(line)) and current is not None:
            current.members[match[1]] = parameters(match[2])
        elif (match := _ATTRIBUTE.match(line)) and current is not None:
            current.members[match[1]] = None
        else:
            raise ValueError(f"cannot read this line of the listing: {line!r}")
    return modules


def parameters(text: str) -> tuple[Parameter, ...]:
    """Return the parameters of a signature such as ``(self, a: Dict[str, int] = None, *rest) -> int``."""
    return tuple(_parameter(part) for part in _split(_inside(text)) if part not in ("self", "cls"))


def _inside(text: str) -> str:
    depth = 0
    for place, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0:
            return text[1:place]
    raise ValueError(f"a signature that does not end: {text!r}")


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _parameter(text: str) -> Parameter:
    name, colon, rest = text.partition(":")
    if not colon or "=" in name:  # the colon may be in the default: `semantic=<Semantic.AT_LEAST_ONCE: (1,)>`
        name, equals, default = text.partition("=")
        return Parameter(name.strip(), default.strip() if equals else None)
    depth = 0
    for place, char in enumerate(rest):
        depth += (char in "([{") - (char in ")]}")
        if char == "=" and depth == 0:
            return Parameter(name.strip(), rest[place + 1 :].strip())
    return Parameter(name.strip())
