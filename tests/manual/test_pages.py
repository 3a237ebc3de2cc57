"""Every code block and every command of every page runs, and shows what it really prints."""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from ekorn.testing import on_local_engine
from tests.manual.blocks import DOCS, ROOT, blocks_of
from tests.manual.page_run import PageRun
from tests.servers.kafka.broker import kafka

__all__ = ["kafka"]

PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])


# Pages whose blocks have a test of their own.
ELSEWHERE = {
    "README.md": "tests/test_package.py",
    "docs/connectors/files.md": "tests/connectors/test_files_page.py",
    "docs/connectors/jdbc.md": "tests/connectors/test_connector_pages.py",
    "docs/connectors/lakes.md": "tests/connectors/test_connector_pages.py",
    "docs/connectors/others.md": "tests/connectors/test_connector_pages.py",
    "docs/dataset.md": "tests/batch/test_docs_examples.py",
    "docs/operations.md": "tests/service/test_commands.py",
    "docs/queryable_state.md": "tests/queryable/test_page.py",
    "docs/state_processor.md": "tests/state_processor/test_page.py",
    "docs/testing.md": "tests/testing/test_docs_examples.py",
}
ON_SPARK = {
    "docs/coming_from/pyspark.md",
    "docs/coming_from/structured_streaming.md",
    "docs/connectors/spark.md",
    "docs/guides/managed_spark.md",
    "docs/tutorial/6-checkpoints.md",
}
WITH_KAFKA = {"docs/tutorial/8-fraud_on_kafka.md"}
SOAK = WITH_KAFKA | {"docs/coming_from/pyspark.md", "docs/coming_from/structured_streaming.md"}  # a minute each
HEAVY = {"docs/tutorial/7-exactly_once.md"}


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _marks(name: str) -> list[pytest.MarkDecorator]:
    return [
        *([pytest.mark.spark] if name in ON_SPARK | WITH_KAFKA else []),
        *([pytest.mark.soak] if name in SOAK else []),
        *([pytest.mark.heavy] if name in HEAVY else []),
    ]


RUN_HERE = [
    pytest.param(page, marks=_marks(_name(page)), id=_name(page))
    for page in PAGES
    if _name(page) not in ELSEWHERE and any(block.language != "text" for block in blocks_of(page))
]


@pytest.mark.parametrize("page", RUN_HERE)
def test_the_blocks_of_a_page_run_as_shown(page, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # as in a shell where the environment is active
    replaced = {"localhost:9092": request.getfixturevalue("kafka").servers} if _name(page) in WITH_KAFKA else {}
    on_spark = _name(page) in ON_SPARK | WITH_KAFKA
    with nullcontext() if on_spark else on_local_engine():
        assert PageRun(page, tmp_path, replaced, on_spark=on_spark).run()


def test_pages_with_tests_of_their_own_have_them():
    wrong = [page for page, test in ELSEWHERE.items() if not (ROOT / page).exists() or not (ROOT / test).exists()]
    assert not wrong


def test_a_block_that_is_left_to_a_test_is_run_by_it():
    left = [(_name(page), block) for page in PAGES for block in blocks_of(page) if block.run_by]
    assert len(left) > 5
    wrong = [
        f"{page}:{block.line}: {block.run_by}"
        for page, block in left
        if not (ROOT / block.run_by).is_file()
        or not re.search(r"blocks_run_by\(", (ROOT / block.run_by).read_text(encoding="utf-8"))
    ]
    assert not wrong


def test_blocks_that_are_not_run_need_what_no_machine_of_the_tests_has():
    """A container runtime. Every other block runs: here, or in the test that a comment above it names."""
    not_run = [block.text for page in PAGES for block in blocks_of(page) if block.not_run]
    assert not [text for text in not_run if not text.startswith("$ docker run ")]


def test_every_setup_belongs_to_a_page():
    setups = Path(__file__).parent / "setups"
    pages = [DOCS / setup.relative_to(setups).with_suffix(".md") for setup in setups.rglob("*.py")]
    assert pages
    assert not [page for page in pages if not page.exists()]
