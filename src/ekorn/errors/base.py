"""The base of every error of ekorn, and the parts of messages that many of them share."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, dataclass_transform

PREVIEW_CHARS = 200
PUBLIC_PATH = "ekorn.errors"  # programs import errors from it, tracebacks show it, and pickles name it

E = TypeVar("E", bound="EkornError")
T = TypeVar("T")


class EkornError(Exception):
    """The base of every error that ekorn raises."""

    __module__ = PUBLIC_PATH
    retryable: ClassVar[bool] = True  # False: another attempt of the job would only fail the same way

    def __init_subclass__(cls) -> None:
        """Name an error of this package by its public path. An error that a program derives keeps its own."""
        super().__init_subclass__()
        if cls.__module__.startswith(f"{PUBLIC_PATH}."):
            cls.__module__ = PUBLIC_PATH


class _Argument:
    """Gives one of the ``args`` of an error a name."""

    def __init__(self, index: int) -> None:
        self._index = index

    def __get__(self, error: EkornError, owner: type[EkornError]) -> Any:
        return error.args[self._index]


class _NotPassed(NamedTuple):
    default: Any


def not_passed(*, default: T, init: Literal[False] = False) -> T:
    """Declare an attribute of an error that is not among its arguments."""
    made: Any = _NotPassed(default)
    declared: T = made
    return declared


@dataclass_transform(eq_default=False, field_specifiers=(not_passed,))
def with_fields(kind: type[E]) -> type[E]:
    """Make the annotated attributes of an error its arguments, in their order.

    The arguments are the error's ``args``, with which it is pickled between processes. ``__str__`` makes the message.

    >>> @with_fields
    ... class TooMany(EkornError):
    ...     found: int
    ...     most: int = 10
    ...
    ...     def __str__(self) -> str:
    ...         return f"there are {self.found}, and {self.most} are allowed"
    >>> TooMany(12)
    TooMany(12, 10)
    >>> print(TooMany(found=3, most=2))
    there are 3, and 2 are allowed
    """
    parameters: list[Parameter] = []
    for name, annotation in vars(kind)["__annotations__"].items():
        default = vars(kind).get(name, Parameter.empty)
        if isinstance(default, _NotPassed):
            setattr(kind, name, default.default)
        else:
            setattr(kind, name, _Argument(len(parameters)))
            parameters.append(Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation))
    signature = Signature(parameters)

    def __init__(self: E, *given: Any, **named: Any) -> None:
        if named or len(given) != len(parameters):
            bound = signature.bind(*given, **named)
            bound.apply_defaults()
            given = bound.args
        BaseException.__init__(self, *given)

    this = Parameter("self", Parameter.POSITIONAL_ONLY)
    __init__.__signature__ = Signature([this, *parameters])  # type: ignore[attr-defined]
    kind.__init__ = __init__  # type: ignore[assignment]
    return kind


def preview(value: Any, limit: int = PREVIEW_CHARS) -> str:
    """Return the repr of a user's value, cut to ``limit`` characters. Never raises, even if the value's repr does.

    >>> preview("a" * 500, limit=10)
    "'aaaaaa..."
    """
    try:
        text = repr(value)
    except Exception as error:  # a broken __repr__ of the user must not hide the error being reported
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def shortened(text: str, limit: int, where: str = "") -> str:
    r"""Return the beginning and the end of a text that has more than ``limit`` characters, with a note between them.

    Args:
        text: The text.
        limit: The most characters, without the note.
        where: Where the whole text is, for the note.

    >>> shortened("abcdefghi" * 100, limit=6)
    'abcd\n[... 894 of 900 characters are left out ...]\nhi'
    """
    if len(text) <= limit:
        return text
    tail = limit // 3
    note = f"[... {len(text) - limit} of {len(text)} characters are left out{where} ...]"
    return f"{text[: limit - tail]}\n{note}\n{text[len(text) - tail :]}"


def printable(text: str, most: int | None = None) -> str:
    r"""Return a text on one line without characters that could steer a terminal, cut to a number of characters.

    >>> printable("a\x1b[2Jb\n"), printable("abcdef", 4)
    ('a\\x1b[2Jb\\n', 'abc…')
    """
    if most is not None and len(text) > most:
        text = f"{text[: most - 1]}…"
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def where(operator_name: str | None, uid: str | None, subtask_index: int | None, activity: str | None = None) -> str:
    """Return ``operator 'count' (uid 'u1', subtask 0)``, with the parts that are known.

    An activity is text that ends before the operator, such as ``the key selector of key_by() after``.
    """
    details = []
    if uid is not None:
        details.append(f"uid {uid!r}")
    if subtask_index is not None:
        details.append(f"subtask {subtask_index}")
    name = "an operator" if operator_name is None else f"operator {operator_name!r}"
    if activity is not None:
        name = f"{activity} {name}"
    return f"{name} ({', '.join(details)})" if details else name
