"""`ParameterTool`: the parameters of a program, from the command line, a file or a dict."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ekorn.config.configuration import Configuration
from ekorn.config.value_text import parse_bool, parse_float, parse_int
from ekorn.errors import ConfigurationError

__all__ = ["ParameterTool"]

NO_VALUE_KEY = "__NO_VALUE_KEY"
_NEGATIVE_NUMBER = re.compile(r"-(0[xX][0-9a-fA-F]+|(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?[lLfFdD]?)")


class ParameterTool:
    """Parameters by name. Values are text; a getter reads them as numbers.

    >>> parameters = ParameterTool.from_args(["--input", "words.txt", "-n", "3", "--verbose"])
    >>> parameters.get("input"), parameters.get_int("n"), parameters.has("verbose")
    ('words.txt', 3, True)
    """

    NO_VALUE_KEY = NO_VALUE_KEY

    def __init__(self, data: Mapping[str, str]) -> None:
        self._data = {str(key): str(value) for key, value in data.items()}
        self._unrequested = set(self._data)

    @staticmethod
    def from_args(args: Sequence[str]) -> ParameterTool:
        """Read ``--key value``, ``-key value`` and flags without a value. Of equal keys the last one counts.

        A value may be a negative number. Any other argument that begins with a dash is the next key.

        Raises:
            ConfigurationError: A value has no key before it, or a key is empty.
        """
        data = {}
        position = 0
        while position < len(args):
            argument = args[position]
            if not argument.startswith("-"):
                raise ConfigurationError(f"expected --key or -key in the arguments, found {argument!r}")
            key = argument.removeprefix("-").removeprefix("-")
            if not key:
                raise ConfigurationError(f"the argument {argument!r} at position {position} does not name a key")
            position += 1
            if position < len(args) and not _is_key(args[position]):
                data[key] = args[position]
                position += 1
            else:
                data[key] = NO_VALUE_KEY
        return ParameterTool(data)

    @staticmethod
    def from_properties_file(path: str | Path) -> ParameterTool:
        """Read a file of ``key=value`` or ``key: value`` lines, in Java's properties format.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"cannot read the properties file {str(path)!r}: {error}") from None
        return ParameterTool(read_properties(text))

    @staticmethod
    def from_map(map: Mapping[str, str]) -> ParameterTool:
        """Return the parameters of a dict."""
        return ParameterTool(map)

    @staticmethod
    def from_system_properties() -> ParameterTool:
        """Return the environment variables, which take the place of Java's system properties."""
        return ParameterTool(os.environ)

    def get(self, key: str, default_value: str | None = None) -> str | None:
        """Return the value, or the default if the parameter was not given."""
        self._unrequested.discard(key)
        return self._data.get(key, default_value)

    def get_required(self, key: str) -> str:
        """Return the value.

        Raises:
            ConfigurationError: The parameter was not given.
        """
        self._unrequested.discard(key)
        if key not in self._data:
            raise ConfigurationError(
                f"the parameter {key!r} is required; the given parameters are {sorted(self._data) or 'none'}"
            )
        return self._data[key]

    def get_int(self, key: str, default_value: int | None = None) -> int:
        """Return the value as a whole number; required when there is no default."""
        return int(self._number(key, default_value, parse_int))

    def get_long(self, key: str, default_value: int | None = None) -> int:
        """Return the value as a whole number; required when there is no default."""
        return self.get_int(key, default_value)

    def get_short(self, key: str, default_value: int | None = None) -> int:
        """Return the value as a whole number from -32768 to 32767; required when there is no default."""
        return self._within(key, default_value, 16)

    def get_byte(self, key: str, default_value: int | None = None) -> int:
        """Return the value as a whole number from -128 to 127; required when there is no default."""
        return self._within(key, default_value, 8)

    def get_float(self, key: str, default_value: float | None = None) -> float:
        """Return the value as a number; required when there is no default."""
        return float(self._number(key, default_value, parse_float))

    def get_double(self, key: str, default_value: float | None = None) -> float:
        """Return the value as a number; required when there is no default."""
        return self.get_float(key, default_value)

    def get_boolean(self, key: str, default_value: bool | None = None) -> bool:
        """Return the value as true or false; required when there is no default. A flag without a value is true."""
        # Flink: Java parses the text that stands for "no value", so there a flag that was given is false.
        if self.get(key) == NO_VALUE_KEY:
            return True
        return bool(self._number(key, default_value, parse_bool))

    def has(self, key: str) -> bool:
        """Return whether the parameter was given, with or without a value."""
        self._unrequested.discard(key)
        return key in self._data

    def get_unrequested_parameters(self) -> set[str]:
        """Return the parameters that were given and never read, which may be misspelt."""
        return set(self._unrequested)

    def get_number_of_parameters(self) -> int:
        """Return the number of parameters."""
        return len(self._data)

    def merge_with(self, other: ParameterTool) -> ParameterTool:
        """Return these parameters and those of `other`. Of a parameter in both, the value of `other` counts."""
        return ParameterTool({**self._data, **other._data})

    def to_map(self) -> dict[str, str]:
        """Return all parameters by name."""
        return dict(self._data)

    def get_configuration(self) -> Configuration:
        """Return all parameters as a configuration."""
        return Configuration.from_dict(self._data)

    def _within(self, key: str, default_value: int | None, bits: int) -> int:
        value, most = self.get_int(key, default_value), 1 << (bits - 1)
        if not -most <= value < most:
            raise ConfigurationError(f"the parameter {key!r} is from {-most} to {most - 1}, not {value}")
        return value

    def _number(self, key: str, default_value: float | None, parse: Callable[[str], float]) -> float:
        self._unrequested.discard(key)
        if key not in self._data and default_value is not None:
            return default_value
        text = self.get_required(key)
        try:
            return parse(text)
        except ValueError as error:
            raise ConfigurationError(f"cannot read the value {text!r} of the parameter {key!r}: {error}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ParameterTool):
            return NotImplemented
        return self._data == other._data

    def __hash__(self) -> int:
        return hash(frozenset(self._data.items()))

    def __repr__(self) -> str:
        return f"ParameterTool({self._data!r})"


def _is_key(argument: str) -> bool:
    return argument.startswith("-") and not _NEGATIVE_NUMBER.fullmatch(argument)


_BLANK = " \t\f"
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(text: str) -> dict[str, str]:
    r"""Return the properties in a text. Of equal keys the last one counts.

    ``#`` and ``!`` begin comments. A key ends at the first blank, ``=`` or ``:``. A backslash at the end of a line
    continues it on the next line, whose leading blanks are dropped. ``\t``, ``\n``, ``\u00e9``, ``\:`` and the like
    stand for characters.

    Example:
        >>> read_properties("name = Ada\n! a comment\nlist: one, \\\n      two\na\\ key=")
        {'name': 'Ada', 'list': 'one, two', 'a key': ''}
    """
    return dict(_split(line) for line in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments and empty lines. A line and its continuations are one."""
    begun: str | None = None
    for line in re.split(r"\r\n|\n|\r", text):
        content = line.lstrip(_BLANK)
        if begun is None and (not content or content[0] in "#!"):
            continue
        backslashes = len(content) - len(content.rstrip("\\"))
        if backslashes % 2:
            begun = (begun or "") + content[:-1]
        else:
            yield (begun or "") + content
            begun = None
    if begun:
        yield begun


def _split(line: str) -> tuple[str, str]:
    match = re.match(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL)
    assert match is not None, "every part of the pattern may be empty"
    return _unescaped(match[1]), _unescaped(match[2])


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        found = match[1]
        return chr(int(found[1:], 16)) if len(found) == 5 else _CONTROL.get(found, found)

    return _ESCAPED.sub(character, text)
