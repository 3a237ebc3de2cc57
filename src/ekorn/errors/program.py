"""Errors of a program and its configuration: most are raised by the call that is wrong."""

from __future__ import annotations

import os
import sys
import warnings

from ekorn.errors.base import PUBLIC_PATH, EkornError, with_fields

_EKORN = os.path.dirname(os.path.dirname(__file__)) + os.sep


class InvalidProgramError(EkornError):
    """The program cannot be run. Raised by the call that is wrong."""

    retryable = False


class DuplicateUidError(InvalidProgramError, ValueError):
    """Two operators have the same uid, or the same uid hash."""


class ConfigurationError(EkornError, ValueError):
    """A configuration value cannot be read, or contradicts another value."""

    retryable = False


@with_fields
class UnsafeFolderError(ConfigurationError):
    """A folder for private files belongs to another user, can be entered by other users, or is a link or a file."""

    path: str
    found: str

    def __str__(self) -> str:
        path, found = self.args
        return (
            f"{path!r} must be a folder of this user that no other user can enter, but {found}; "
            "remove it or `chmod 700` it, or choose another directory"
        )


class UnsupportedOperationError(EkornError, NotImplementedError):
    """Flink has the operation, but it is not allowed or not offered here."""


class AccumulatorError(EkornError):
    """Two accumulators with the same name differ in type, or an accumulator could not be merged."""


class ProgramWarning(UserWarning):
    """A program that can run probably does not do what its author wanted."""

    __module__ = PUBLIC_PATH


def warn(message: str) -> None:
    """Warn with `ProgramWarning` at the line of the program that called into this package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_EKORN):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, ProgramWarning, stacklevel=level)
