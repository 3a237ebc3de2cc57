"""The programs on docs/state_processor.md run, in their order, and their assertions hold."""

from pathlib import Path

from ekorn.testing import on_local_engine
from tests.manual.blocks import blocks_of

PAGE = Path(__file__).parents[2] / "docs" / "state_processor.md"


def test_the_programs_of_the_page_run(tmp_path, monkeypatch):
    programs = [block.text for block in blocks_of(PAGE) if block.language == "python" and not block.run_by]
    assert len(programs) == 8
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    with on_local_engine():
        for number, program in enumerate(programs):
            exec(compile(program, f"program {number + 1} of {PAGE.name}", "exec"), names)
