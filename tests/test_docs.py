"""Pages name only what exists: linked files, modules of `src/ekorn`, tests, make targets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.manual import errors_page, gallery_pages, rest_page
from tests.manual.blocks import FENCE, LANGUAGES, blocks_of

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BASES = [ROOT, ROOT / "src", ROOT / "src" / "ekorn", ROOT / "tests"]
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_a_page_says_what_it_is(page: Path) -> None:
    without = [block.line for block in blocks_of(page) if block.language not in LANGUAGES]
    assert not without, f"{page.relative_to(ROOT)}, lines {without}: begin the block with one of {sorted(LANGUAGES)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_settings_of_a_page_are_in_fences(page: Path) -> None:
    """An indented block has no language, so no test would run it."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    commands = re.findall(r"^ {4,}((?:head|pip|ekorn|python|make|git)[ .].*)$", text, re.MULTILINE)
    assert not commands, f"{page.relative_to(ROOT)}: put into a fence: {commands}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_words_and_not_file_names(page: Path) -> None:
    named = re.findall(r"\[`?[\w/.-]+\.(?:md|py|json)`?\]\(", page.read_text(encoding="utf-8"))
    assert not named, f"{page.relative_to(ROOT)}: give these links words: {named}"


def test_the_page_of_errors_is_written_from_the_classes() -> None:
    assert errors_page.PAGE.read_text(encoding="utf-8") == errors_page.page(), "run python -m tests.manual.errors_page"


def test_the_page_of_paths_is_written_from_the_descriptions() -> None:
    assert rest_page.PAGE.read_text(encoding="utf-8") == rest_page.page(), "run python -m tests.manual.rest_page"


def test_programs_on_pages_are_those_of_the_repository() -> None:
    pages = gallery_pages.pages()
    assert len(pages) >= 10
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    old = [page.name for page, text in texts.items() if gallery_pages.with_programs(text) != text]
    assert not old, f"run python -m tests.manual.gallery_pages: {old}"


def test_a_page_reads_the_same_on_a_code_host() -> None:
    """A snippet that only the site's builder resolves would be shown as its own source there."""
    assert not [page.name for page in PAGES if "--8<--" in page.read_text(encoding="utf-8")]


def test_every_decision_is_listed_under_its_title() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    for page in sorted(folder.glob("0*.md")):
        heading = re.match(r"# (\d+)\. (.*)", page.read_text(encoding="utf-8"))
        assert heading is not None
        number, title = heading.groups()
        assert f"{number}. [{title}]({page.name})" in listed


def test_the_scoreboard_counts_its_rows() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \|.*\| (shown|partly: [^|]+) \|$", text, re.MULTILINE)
    assert len(rows) == len(re.findall(r"^\| \d+ \|", text, re.MULTILINE)), "a row is shown or partly shown"
    assert sorted(int(number) for number, _ in rows) == list(range(1, len(rows) + 1))
    shown = sum(result == "shown" for _, result in rows)
    assert f"Of {len(rows)} cases, {shown} are shown and {len(rows) - shown} partly." in text


def test_every_operator_state_of_the_runtime_is_described() -> None:
    described = (ROOT / "docs" / "formats" / "operator-state.md").read_text(encoding="utf-8")
    operators = [path.read_text(encoding="utf-8") for path in (ROOT / "src" / "ekorn" / "operators").rglob("*.py")]
    names = {name for text in operators for name in re.findall(r'ListStateDescriptor\("(_[\w/]+)"', text)}
    assert len(names) > 7
    assert not [name for name in names if f"| `{name}`" not in described]


def test_the_pipeline_on_the_page_of_data_frames_is_the_example_that_runs() -> None:
    page = (ROOT / "docs" / "connectors" / "spark.md").read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(def pipeline.*?)```", page, re.DOTALL)
    example = (ROOT / "examples" / "spark_pipeline.py").read_text(encoding="utf-8")
    assert len(programs) == 1
    assert programs[0] in example
