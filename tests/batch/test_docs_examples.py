"""The examples of docs/dataset.md run as they stand there."""

import re
from pathlib import Path

from ekorn.testing import on_local_engine

PAGE = Path(__file__).parents[2] / "docs" / "dataset.md"


def test_the_examples_of_the_page_run():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, object] = {"__name__": "page"}
    with on_local_engine():
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)
