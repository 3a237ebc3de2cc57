"""`Configuration`: keys and values as set by a program, a file or the command line.

A value keeps the type it was set with and is read as another type if its text allows it. The meaning and the default
of a key are declared in `ekorn.config.options`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ekorn.config.masking import masked_settings
from ekorn.config.value_text import parse_bool, parse_float, parse_int, parse_list, value_text
from ekorn.errors import ConfigurationError

__all__ = ["Configuration"]

T = TypeVar("T")


class Configuration:
    """A set of keys with values.

    >>> configuration = Configuration().set_integer("parallelism.default", 4)
    >>> configuration.get_string("parallelism.default", "1")
    '4'
    """

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, Any] = {} if other is None else dict(other._values)

    @classmethod
    def from_dict(cls, map: Mapping[str, str]) -> Configuration:
        """Return a configuration of these keys and values."""
        configuration = cls()
        for key, value in map.items():
            configuration._set(key, value)
        return configuration

    def get_string(self, key: str, default_value: str | None = None) -> Any:
        """Return the value as text."""
        return self._read(key, default_value, str)

    def set_string(self, key: str, value: str) -> Configuration:
        """Set text, and return this configuration."""
        if not isinstance(value, str):
            raise TypeError(f"set_string({key!r}, ...) takes a str, not {value!r}")
        return self._set(key, value)

    def get_integer(self, key: str, default_value: int | None = None) -> Any:
        """Return the value as a whole number.

        Raises:
            ConfigurationError: The value is not a whole number.
        """
        return self._read(key, default_value, parse_int)

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set a whole number."""
        return self._set(key, int(value))

    def get_boolean(self, key: str, default_value: bool | None = None) -> Any:
        """Return the value as true or false.

        Raises:
            ConfigurationError: The value is neither.
        """
        return self._read(key, default_value, parse_bool)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set true or false."""
        return self._set(key, bool(value))

    def get_float(self, key: str, default_value: float | None = None) -> Any:
        """Return the value as a number.

        Raises:
            ConfigurationError: The value is not a number.
        """
        return self._read(key, default_value, parse_float)

    def set_float(self, key: str, value: float) -> Configuration:
        """Set a number."""
        return self._set(key, float(value))

    def get_bytearray(self, key: str, default_value: bytearray | None = None) -> Any:
        """Return the value as bytes.

        Raises:
            ConfigurationError: The value was not set as bytes.
        """
        value = self._values.get(key)
        if value is None:
            return default_value
        if not isinstance(value, bytes):
            raise ConfigurationError(f"the value {value!r} of {key!r} cannot be read as bytes; use set_bytearray")
        return bytearray(value)

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Set bytes."""
        return self._set(key, bytes(value))

    def key_set(self) -> set[str]:
        """Return every key that has a value."""
        return set(self._values)

    def contains_key(self, key: str) -> bool:
        """Return whether the key has a value."""
        return key in self._values

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Take over every value of another configuration, with a prefix before its keys; return this configuration."""
        for key, value in other._values.items():
            self._values[(prefix or "") + key] = value
        return self

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Put every key into a dict, with its value in the type it was set with."""
        target_dict.update(self._values)

    def remove_config(self, key: str) -> bool:
        """Remove a key, and return whether it had a value."""
        return self._values.pop(key, None) is not None

    def to_dict(self) -> dict[str, str]:
        """Return every key with its value as text."""
        return {key: value_text(value) for key, value in self._values.items()}

    @staticmethod
    def parse_list_value(value: str | None) -> list[str]:
        """Return the entries of a list value, such as ``a;b``."""
        if not value:
            return []
        try:
            return parse_list(value)
        except ValueError as error:
            raise ConfigurationError(f"cannot read {value!r} as a list: {error}") from None

    def _set(self, key: str, value: Any) -> Configuration:
        if not isinstance(key, str) or not key:
            raise ConfigurationError(f"a configuration key is a non-empty text, got {key!r}")
        if value is None:
            raise ConfigurationError(f"the value of {key!r} is None; use remove_config to unset a key")
        self._values[key] = value
        return self

    def _read(self, key: str, default_value: Any, parse: Callable[[str], T]) -> T | Any:
        value = self._values.get(key)
        if value is None:
            return default_value
        try:
            return parse(value_text(value))
        except ValueError as error:
            raise ConfigurationError(f"cannot read the value {value!r} of {key!r}: {error}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Configuration):
            return NotImplemented
        return self._values == other._values

    def __hash__(self) -> int:
        # Flink: a configuration is hashed by its current values; do not change one that is the key of a dict.
        return hash(frozenset(self.to_dict().items()))

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key}={text}" for key, text in masked_settings(self.to_dict()).items()) + "}"

    def __repr__(self) -> str:
        return f"Configuration({masked_settings(self._values)!r})"
