"""Reads once more what looks damaged: a storage may have cut off one answer, or missed what is there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from ekorn.errors import CorruptFileError

__all__ = ["second_look"]

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


def second_look(read: Callable[[], T]) -> T:
    """Return what a function reads and checks. If it finds damage, it is called once more.

    Raises:
        CorruptFileError: The file is damaged at the second look too.
    """
    try:
        return read()
    except CorruptFileError as error:
        _LOG.warning("%s; it is read once more", error)
        return read()
