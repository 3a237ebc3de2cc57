"""Pages name only what exists: linked files, modules of `src/tamias`, tests, make targets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BASES = [ROOT, ROOT / "src", ROOT / "src" / "tamias", ROOT / "tests"]
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
PATH = re.compile(r"`([\w./-]+/[\w.-]+\.py|[\w-]+\.py|(?:src|tests|examples|benchmarks|docs)/[\w./-]*)(?:::(\w+))?`")
ALSO = re.compile(r"`(?:[\w./-]+\.py)?::(\w+)`")
TARGET = re.compile(r"`make ([\w-]+)`")


def existing(path: str, page: Path) -> list[Path]:
    """Return the files that a path on a page may mean; a bare file name may be anywhere."""
    found = [base / path for base in [*BASES, page.parent] if (base / path).exists()]
    if not found and "/" not in path:
        found = [*(ROOT / "src").rglob(path), *(ROOT / "tests").rglob(path), *(ROOT / "examples").rglob(path)]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_only_what_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    wrong = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    program = re.compile(r"script\.py|program\.py|my_\w+\.py|main\.py")  # stand for a user's own
    for path, test in PATH.findall(text):
        files = existing(path, page)
        if not files and not program.fullmatch(path):
            wrong.append(path)
        elif test and not any(f"def {test}(" in file.read_text(encoding="utf-8") for file in files):
            wrong.append(f"{path}::{test}")
    tests = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    wrong += [test for test in ALSO.findall(text) if not any(f"def {test}(" in content for content in tests)]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    wrong += [f"make {name}" for name in TARGET.findall(text) if not re.search(rf"^{name}:", makefile, re.MULTILINE)]
    assert not wrong, f"{page.relative_to(ROOT)} names what does not exist: {', '.join(wrong)}"


def test_every_decision_is_listed_under_its_title() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    for page in sorted(folder.glob("0*.md")):
        heading = re.match(r"# (\d+)\. (.*)", page.read_text(encoding="utf-8"))
        assert heading is not None
        number, title = heading.groups()
        assert f"{number}. [{title}]({page.name})" in listed


def test_every_operator_state_of_the_runtime_is_described() -> None:
    described = (ROOT / "docs" / "formats" / "operator-state.md").read_text(encoding="utf-8")
    operators = [path.read_text(encoding="utf-8") for path in (ROOT / "src" / "tamias" / "operators").rglob("*.py")]
    names = {name for text in operators for name in re.findall(r'ListStateDescriptor\("(_[\w/]+)"', text)}
    assert len(names) > 7
    assert not [name for name in names if f"| `{name}`" not in described]


def test_the_pipeline_on_the_page_of_data_frames_is_the_example_that_runs() -> None:
    page = (ROOT / "docs" / "connectors" / "spark.md").read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(def pipeline.*?)```", page, re.DOTALL)
    example = (ROOT / "examples" / "spark_pipeline.py").read_text(encoding="utf-8")
    assert len(programs) == 1
    assert programs[0] in example
