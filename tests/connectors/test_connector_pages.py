"""The examples on the pages of connectors run as shown, on the local engine."""

import doctest
from pathlib import Path

import pytest

from ekorn.testing import on_local_engine

PAGES = Path(__file__).parents[2] / "docs" / "connectors"


@pytest.mark.parametrize("page", ["jdbc.md", "lakes.md", "others.md"])
def test_the_examples_of_a_page_run_as_shown(page):
    with on_local_engine():
        failed, attempted = doctest.testfile(str(PAGES / page), module_relative=False)
    assert attempted > 15
    assert failed == 0
