"""The examples of the page about files run as shown."""

import doctest
from pathlib import Path

from ekorn.testing.local_run import on_local_engine

PAGE = Path(__file__).resolve().parents[2] / "docs" / "connectors" / "files.md"


def test_the_examples_of_the_page_run_as_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with on_local_engine():
        failed, attempted = doctest.testfile(str(PAGE), module_relative=False)
    assert attempted > 40
    assert failed == 0
