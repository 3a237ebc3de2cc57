"""Writes the programs of examples/ into the pages that show them: `python -m tests.manual.gallery_pages`.

A page shows a program as a block whose title is the program's path: `python title="examples/funnel.py"`. The text is in
the page itself, so that a page reads the same on the site, in an editor and on a code host.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.manual.blocks import DOCS, ROOT

_SHOWN = re.compile(r'^```python title="(?P<path>examples/[\w/]+\.py)"\n(?P<text>.*?)^```$', re.M | re.S)


def pages() -> list[Path]:
    """Return the pages that show a program of the repository."""
    return [page for page in sorted(DOCS.rglob("*.md")) if _SHOWN.search(page.read_text(encoding="utf-8"))]


def with_programs(page: str) -> str:
    """Return the text of a page with every program as it is in its file."""
    return _SHOWN.sub(lambda found: _block(found["path"]), page)


def _block(path: str) -> str:
    return f'```python title="{path}"\n{(ROOT / path).read_text(encoding="utf-8")}```'


if __name__ == "__main__":
    for each in pages():
        each.write_text(with_programs(each.read_text(encoding="utf-8")), encoding="utf-8")
