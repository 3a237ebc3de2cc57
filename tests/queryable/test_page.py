"""The programs on docs/queryable_state.md run, in their order, and their assertions hold."""

import re
from pathlib import Path

from ekorn.testing import on_local_engine

PAGE = Path(__file__).parents[2] / "docs" / "queryable_state.md"


def test_the_programs_of_the_page_run():
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(programs) == 2
    names = {"__name__": "page"}
    with on_local_engine():
        for number, program in enumerate(programs):
            exec(compile(program, f"program {number + 1} of {PAGE.name}", "exec"), names)
