"""The fenced blocks of a page, as the site shows them.

| fence | what the tests do with it |
|---|---|
| `python` | runs, in the page's one namespace; with `>>>` as a doctest |
| `python title="name.py"`, and any other language with such a title | is written to that file in the page's folder |
| `text title="prints"` | is what the block before it printed |
| `console` | each line after `$ ` runs in the page's folder; the lines that follow, if any, are what it prints |
| `yaml`, `json`, `toml` | is parsed |
| `text` | a drawing or a format: nothing to run |

`...` in shown output stands for anything. A block below a comment `<!-- Run by tests/some/test.py -->`, which readers
do not see, is left to that test: it needs a session, an environment or a service of its own. A block below a line that
begins with "Not run by the tests:" is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LANGUAGES = {"python", "console", "text", "yaml", "json", "toml"}

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*) *(?P<rest>[^\n`]*)\n(?P<text>.*?)^(?P=indent)``` *$", re.M | re.S
)
_TITLE = re.compile(r'title="([^"]+)"')
_NOT_RUN = re.compile(r"^\W*Not run by the tests: *(.+?)\W*$")
_RUN_BY = re.compile(r"^ *<!-- Run by (tests/[\w/]+\.py) -->$")


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    line: int
    language: str
    title: str
    text: str
    not_run: str
    """The reason that the page gives; empty for a block that runs."""
    run_by: str
    """The test that runs the block instead of the page's run; empty for most."""

    @property
    def is_file(self) -> bool:
        return "." in self.title


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page in their order."""
    return list(blocks_in(page.read_text(encoding="utf-8")))


def blocks_run_by(test: str, page: Path) -> list[Block]:
    """Return the blocks of a page that are left to a test: its `__file__`."""
    named = [block for block in blocks_of(page) if block.run_by == str(Path(test).resolve().relative_to(ROOT))]
    assert named, f"{page.relative_to(ROOT)} has no block that is run by {test}"
    return named


def blocks_in(text: str) -> Iterator[Block]:
    """Yield the blocks of a text."""
    for found in FENCE.finditer(text):
        before = text[: found.start()].rstrip().rsplit("\n\n", 1)[-1].replace("\n", " ")
        title = _TITLE.search(found["rest"])
        reason = _NOT_RUN.match(before)
        test = _RUN_BY.match(before)
        yield Block(
            line=text.count("\n", 0, found.start()) + 1,
            language=found["language"],
            title=title[1] if title else "",
            text=dedent(found["text"]),
            not_run=reason[1] if reason else "",
            run_by=test[1] if test else "",
        )
