"""The base of every error of ekorn, and the parts of messages that many of them share."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

PREVIEW_CHARS = 200
PUBLIC_PATH = "ekorn.errors"  # programs import errors from it, tracebacks show it, and pickles name it

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


class ErrorArgument(Generic[T]):
    """A name for one of the ``args`` of an error."""

    def __init__(self, index: int) -> None:
        self._index = index

    def __get__(self, error: EkornError, owner: type[EkornError]) -> T:
        return error.args[self._index]  # type: ignore[no-any-return]


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
