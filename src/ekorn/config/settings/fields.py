"""Ties the fields of settings objects to the options that fill them.

An option alone declares its key, type, default, unit and sentence. A settings class names the option of each field, and
so has the option's default; `read_settings` reads every field from a configuration. A check of one field stands in the
function that makes its value, and a check across fields in the `__post_init__` of the class.

>>> from dataclasses import dataclass
>>> from ekorn.config import options
>>> @dataclass(frozen=True)
... class Pace:
...     target_ms: int = filled_by(options.EPOCH_TARGET)
...     bytes_per_ms: float = filled_by(options.EPOCH_SOURCE_BYTES, options.EPOCH_TARGET, by=lambda size, ms: size / ms)
>>> Pace().target_ms == options.EPOCH_TARGET.default
True
>>> read_settings(Pace, Configuration().set_integer("ekorn.epoch.target-ms", 1024))
Pace(target_ms=1024, bytes_per_ms=65536.0)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, overload

from ekorn.config.configuration import Configuration
from ekorn.config.option import ConfigOption

__all__ = ["Filling", "filled_by", "fillings", "part", "read_settings"]

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
T = TypeVar("T")

_FILLING, _PART = "filling", "part"  # keys of a field's metadata


@dataclass(frozen=True)
class Filling:
    """Makes the value of a field from the values of one or more options.

    Attributes:
        option: The option whose value the field holds.
        others: Further options that the value depends on.
        by: Makes the field's value from the values of the options; None takes the option's value as it is.
    """

    option: ConfigOption[Any]
    others: tuple[ConfigOption[Any], ...] = ()
    by: Callable[..., Any] | None = None

    def default(self) -> Any:
        """Return the value of the field if no key is set."""
        return self._made(*(option.default for option in (self.option, *self.others)))

    def read(self, configuration: Configuration) -> Any:
        """Return the value of the field in a configuration.

        Raises:
            ConfigurationError: A value cannot be read, or is out of range.
        """
        return self._made(*(option.read(configuration) for option in (self.option, *self.others)))

    def _made(self, value: Any, *more: Any) -> Any:
        return value if self.by is None else self.by(value, *more)


@overload
def filled_by(option: ConfigOption[T]) -> T: ...
@overload
def filled_by(option: ConfigOption[A], *, by: Callable[[A], T]) -> T: ...
@overload
def filled_by(option: ConfigOption[A], other: ConfigOption[B], /, *, by: Callable[[A, B], T]) -> T: ...
@overload
def filled_by(
    option: ConfigOption[A], other: ConfigOption[B], third: ConfigOption[C], /, *, by: Callable[[A, B, C], T]
) -> T: ...
def filled_by(option: ConfigOption[Any], *others: ConfigOption[Any], by: Callable[..., Any] | None = None) -> Any:
    """Declare a field of a settings class that an option fills.

    Args:
        option: The option whose value, type and default the field has.
        others: Further options that the value depends on.
        by: Makes the field's value from the values of all these options, and may refuse them with a
            `ConfigurationError`. It also makes the field's default, from the defaults of the options.
    """
    assert by is not None or not others, "name the function that makes one value of several options"
    filling = Filling(option, others, by)
    default = filling.default()
    if isinstance(default, list | dict):  # a new one for each object
        return field(default_factory=filling.default, metadata={_FILLING: filling})
    return field(default=default, metadata={_FILLING: filling})


def part(kind: type[T]) -> T:
    """Declare a field that holds settings of another class, which are read with the object that has the field."""
    made: Any = field(default_factory=kind, metadata={_PART: kind})
    declared: T = made
    return declared


def fillings(kind: type[Any]) -> dict[str, Filling]:
    """Return the fields of a settings class that options fill, by name."""
    return {each.name: each.metadata[_FILLING] for each in fields(kind) if _FILLING in each.metadata}


def read_settings(kind: type[T], configuration: Configuration, /, **given: Any) -> T:
    """Return settings whose fields are read from a configuration.

    Args:
        kind: The settings class.
        configuration: The keys and values.
        given: The values of fields that are not read: of those that no option fills, or of any other.

    Raises:
        ConfigurationError: A value cannot be read, is out of range, or contradicts another one.
    """
    values = dict(given)
    for each in fields(kind):  # type: ignore[arg-type]
        if each.name in given:
            continue
        if _FILLING in each.metadata:
            values[each.name] = each.metadata[_FILLING].read(configuration)
        elif _PART in each.metadata:
            values[each.name] = read_settings(each.metadata[_PART], configuration)
    return kind(**values)
