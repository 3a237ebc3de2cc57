"""Trying again: calls to a storage fail now and then without meaning anything by it.

What will not change by itself (a missing file, no permission, a full disk, a wrong key) is raised at once. Anything
else is tried again a few times, each time after a longer pause, spread by chance so that slots do not knock in step.
"""

from __future__ import annotations

import errno
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tamias.errors import TamiasError

__all__ = ["Patience"]

T = TypeVar("T")
_LOG = logging.getLogger(__name__)

_FINAL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENAMETOOLONG, errno.EISDIR, errno.ENOTDIR}
_FINAL_KINDS = (FileNotFoundError, FileExistsError, PermissionError, TamiasError, TypeError, ValueError)
# As the libraries word them; their errors have no codes of their own.
_FINAL_WORDS = ("allow_bucket_creation", "ACCESS_DENIED", "NO_SUCH_BUCKET", "INVALID_ACCESS_KEY", "SIGNATURE_DOES_NOT")


@dataclass(frozen=True)
class Patience:
    """How often and how long: with these numbers some three seconds in all.

    >>> Patience(tries=3, sleep=print, chance=random.Random(1)).call(lambda: 7)
    7
    """

    tries: int = 6
    first_pause_s: float = 0.1
    sleep: Callable[[float], object] = time.sleep
    chance: random.Random = field(default_factory=random.SystemRandom, compare=False)

    def call(self, action: Callable[[], T]) -> T:
        """The result of the action, at the first try that gives one; the last error when none does."""
        pause = self.first_pause_s
        for _ in range(self.tries - 1):
            try:
                return action()
            except Exception as error:  # whatever a library raises
                if is_final(error):
                    raise
                _LOG.debug("a call to the storage failed with %s, and is tried again", type(error).__name__)
            self.sleep(pause * (0.5 + self.chance.random()))
            pause *= 2
        return action()


def is_final(error: Exception) -> bool:
    """Whether the same call would fail the same way a moment later."""
    if isinstance(error, _FINAL_KINDS):
        return True
    if isinstance(error, OSError) and error.errno in _FINAL:
        return True
    said = str(error)
    return any(words in said for words in _FINAL_WORDS)
