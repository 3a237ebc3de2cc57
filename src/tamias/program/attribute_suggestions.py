"""Misspelt methods of streams and environments: the error names the method that was probably meant."""

from __future__ import annotations

import difflib
import re
from typing import NoReturn

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class SuggestsMethods:
    """A class whose objects answer `keyBy`, Java's spelling, with the name `key_by`."""

    def __getattr__(self, name: str) -> NoReturn:
        said = f"{type(self).__name__!r} object has no attribute {name!r}"
        if not name.startswith("_"):
            said += _suggestion(name, [each for each in dir(type(self)) if not each.startswith("_")])
        raise AttributeError(said, name=name, obj=self)


def _suggestion(name: str, methods: list[str]) -> str:
    spelt = _WORD_START.sub("_", name).lower()
    if spelt in methods:
        return f"; the method is {spelt}()"
    close = difflib.get_close_matches(spelt, methods, 2, 0.8)
    return f"; did you mean {' or '.join(close)}?" if close else ""
