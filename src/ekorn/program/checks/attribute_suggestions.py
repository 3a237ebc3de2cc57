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
        if name.startswith("_"):
            raise AttributeError(said, name=name, obj=self)
        spelt = _WORD_START.sub("_", name).lower()
        methods = [each for each in dir(type(self)) if not each.startswith("_")]
        if spelt in methods:
            suggestion: str | None = f"the method is {spelt}()"
        else:
            suggestion = self._instead_of(spelt) or _near(spelt, methods)
        if suggestion is None:
            raise AttributeError(said, name=name, obj=self)
        raise AttributeError(f"{said}; {suggestion}", name=name, obj=None)  # with `obj` Python adds a suggestion

    def _instead_of(self, name: str) -> str | None:
        """Return what to do for a method that another class has; None to suggest one with a similar name."""
        return None


def _near(name: str, methods: list[str]) -> str | None:
    close = difflib.get_close_matches(name, methods, 2, 0.8)
    return f"did you mean {' or '.join(close)}?" if close else None
