"""`ConfigOption`: one key with its type, default and meaning; and the builder of such options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ekorn.config.configuration import Configuration
from ekorn.config.value_text import parse_bool, parse_float, parse_int, value_text
from ekorn.errors import ConfigurationError

__all__ = ["ConfigOption", "ConfigOptions"]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ConfigOption(Generic[T]):
    """A key, the parser of its text, its default and its meaning.

    Args:
        key: The key of Flink 2.x.
        parse: Turns text into a value; raises ``ValueError`` with the reason.
        default: The value when no key is set.
        old_keys: Keys of earlier versions of Flink, tried in this order when ``key`` is absent.
        unit: The unit of the number, ``ms`` or ``bytes``, or nothing.
        sentence: The meaning of the option.
        check: Returns why a value is refused, or None.
        values: The allowed values, if they are few.
    """

    key: str
    parse: Callable[[str], T]
    default: T
    old_keys: tuple[str, ...] = ()
    unit: str = ""
    sentence: str = ""
    check: Callable[[T], str | None] | None = None
    values: tuple[str, ...] = ()

    def find(self, configuration: Configuration) -> str | None:
        """Return the key, current or old, under which the configuration has a value for this option, or None."""
        return next((key for key in (self.key, *self.old_keys) if configuration.contains_key(key)), None)

    def read(self, configuration: Configuration) -> T:
        """Return the value of the option in a configuration, or its default.

        Raises:
            ConfigurationError: The value cannot be read, or is out of range.
        """
        key = self.find(configuration)
        if key is None:
            return self.default
        text = value_text(configuration.get_string(key))
        try:
            value = self.parse(text)
            refusal = self.check(value) if self.check is not None else None
            if refusal is not None:
                raise ValueError(refusal)
        except ValueError as error:
            raise ConfigurationError(f"cannot read the value {text!r} of {key!r}: {error}") from None
        return value

    def __repr__(self) -> str:
        return f"ConfigOption({self.key!r}, default={self.default!r})"


class ConfigOptions:
    """Builds the options of a program.

    >>> option = ConfigOptions.key("shop.currency").string_type().default_value("EUR")
    >>> option.read(Configuration())
    'EUR'
    """

    class OptionBuilder:
        """An option with a key and without a type."""

        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """Make it an option of true or false."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, parse_bool)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Make it an option of a whole number."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, parse_int)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Make it an option of a whole number."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, parse_int)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Make it an option of a number."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, parse_float)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Make it an option of a number."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, parse_float)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """Make it an option of text."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, str)

    class TypedConfigOptionBuilder(Generic[T]):
        """An option with a key and a type, and without a default."""

        def __init__(self, key: str, parse: Callable[[str], T]) -> None:
            self._key = key
            self._parse = parse

        def default_value(self, value: T) -> ConfigOption[T]:
            """Return the option, with this value when the key is absent."""
            return ConfigOption(self._key, self._parse, value)

        def no_default_value(self) -> ConfigOption[T | None]:
            """Return the option, with None when the key is absent."""
            parse: Callable[[str], Any] = self._parse
            return ConfigOption(self._key, parse, None)

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """Start an option with its key."""
        if not key:
            raise ConfigurationError("an option needs a key")
        return ConfigOptions.OptionBuilder(key)
