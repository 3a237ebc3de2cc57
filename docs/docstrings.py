"""An extension of griffe, which reads docstrings for the site: examples in docstrings become blocks of code."""

from __future__ import annotations

from typing import Any

import griffe


class DoctestFences(griffe.Extension):
    """Puts a fence around each run of lines that begins with `>>>`, up to the next empty line."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None and ">>>" in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Return a docstring with its examples in fences, at the indentation they have."""
    lines: list[str] = []
    fence: str | None = None
    for line in [*text.splitlines(), ""]:
        if fence is None and line.lstrip().startswith(">>> "):
            fence = line[: len(line) - len(line.lstrip())] + "```"
            lines += ["", f"{fence}pycon"]
        elif fence is not None and not line.strip():
            lines.append(fence)
            fence = None
        lines.append(line)
    return "\n".join(lines[:-1])
