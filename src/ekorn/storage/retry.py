"""Repeat calls to a storage that fail for a reason that may pass.

Errors that a retry does not cure (a missing file, no permission, a full disk) are raised at once. After any other
error the call is repeated a few times. The pauses grow, and are random so that slots do not retry in step.
"""

from __future__ import annotations

import errno
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from ekorn.errors import EkornError

__all__ = ["Patience", "is_final"]

T = TypeVar("T")
_LOG = logging.getLogger(__name__)

_FINAL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENAMETOOLONG, errno.EISDIR, errno.ENOTDIR})
_FINAL_CLASSES = (FileNotFoundError, FileExistsError, PermissionError, EkornError, TypeError, ValueError)


def is_final(error: Exception) -> bool:
    """Return whether the same call would raise the same error again a moment later.

    This decides by class and errno. Errors of a storage library are known to its adapter (`Access.is_final`).
    """
    return isinstance(error, _FINAL_CLASSES) or (isinstance(error, OSError) and error.errno in _FINAL_ERRNOS)


@dataclass(frozen=True)
class Patience:
    """The number of attempts of a call and the pauses between them; the defaults take about three seconds in all.

    >>> Patience(tries=3, sleep=print, chance=random.Random(1)).call(lambda: 7)
    7
    """

    tries: int = 6
    first_pause_s: float = 0.1
    sleep: Callable[[float], object] = time.sleep
    chance: random.Random = field(default_factory=random.SystemRandom, compare=False)

    def call(self, action: Callable[[], T], final: Callable[[Exception], bool] = is_final) -> T:
        """Return the result of the first try that succeeds; raise a final error, or the error of the last try."""
        pause_s = self.first_pause_s
        for _ in range(self.tries - 1):
            try:
                return action()
            except Exception as error:  # each library raises errors of its own
                if final(error):
                    raise
                _LOG.debug("retrying a storage call that failed with %s", type(error).__name__)
            self.sleep(pause_s * (0.5 + self.chance.random()))
            pause_s *= 2
        return action()
