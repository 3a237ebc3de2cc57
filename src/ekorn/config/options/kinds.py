"""Short ways to declare an option of a common kind, and the checks of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ekorn.config.option import ConfigOption
from ekorn.config.value_text import parse_bool, parse_choice, parse_duration_ms, parse_int

C = TypeVar("C", bound=str)


def at_least(least: float) -> Callable[[Any], str | None]:
    """Return a check that a number is not below a bound."""
    return lambda value: None if value is None or value >= least else f"must be at least {least}"


def within(low: float, high: float) -> Callable[[Any], str | None]:
    """Return a check that a number lies between two bounds, both included."""
    return lambda value: None if low <= value <= high else f"must be between {low} and {high}"


def flag(key: str, default: bool, sentence: str, *old_keys: str) -> ConfigOption[bool]:
    """Declare an option that is true or false."""
    return ConfigOption(key, parse_bool, default, old_keys, "", sentence)


def text(key: str, sentence: str, *old_keys: str) -> ConfigOption[str | None]:
    """Declare an option whose value is text, or None if it is not set."""
    return ConfigOption[str | None](key, str, None, old_keys, "", sentence)


def millis(key: str, default: int, sentence: str, *old_keys: str) -> ConfigOption[int]:
    """Declare a duration in milliseconds, 0 or more."""
    return ConfigOption(key, parse_duration_ms, default, old_keys, "ms", sentence, at_least(0))


def count(key: str, default: int, sentence: str, *old_keys: str, least: int = 0) -> ConfigOption[int]:
    """Declare a whole number."""
    return ConfigOption(key, parse_int, default, old_keys, "", sentence, at_least(least))


def choice(key: str, default: C, choices: tuple[C, ...], sentence: str, *old_keys: str) -> ConfigOption[C]:
    """Declare an option with a few allowed values."""
    return ConfigOption(key, parse_choice(*choices), default, old_keys, "", sentence, values=choices)


def comma_list(key: str, sentence: str) -> ConfigOption[tuple[str, ...]]:
    """Declare a list of texts that are separated by commas."""
    return ConfigOption(key, _comma_separated, (), sentence=sentence)


def _comma_separated(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())
