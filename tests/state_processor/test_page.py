"""The programs on docs/state_processor.md run, in their order, and their assertions hold."""

import re
from pathlib import Path

import pyarrow
import pyarrow.parquet

from tamias.testing import on_local_engine

PAGE = Path(__file__).parents[2] / "docs" / "state_processor.md"


def test_the_programs_of_the_page_run(tmp_path, monkeypatch):
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(programs) == 7
    monkeypatch.chdir(tmp_path)
    history = {"user": ["ann", "bob", "ann"], "page": ["/", "/", "/shoes"]}
    (tmp_path / "history").mkdir()
    pyarrow.parquet.write_table(pyarrow.table(history), tmp_path / "history" / "visits.parquet")
    names = {"__name__": "page"}
    with on_local_engine():
        for number, program in enumerate(programs):
            exec(compile(program, f"program {number + 1} of {PAGE.name}", "exec"), names)
