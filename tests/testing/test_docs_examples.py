"""The examples of tests in the manual and in docstrings run as tests."""

import doctest
from pathlib import Path

import ekorn.testing.harnesses

MANUAL = Path(__file__).parent.parent.parent / "docs" / "testing.md"


def test_the_examples_of_the_manual_run_as_shown():
    failed, attempted = doctest.testfile(str(MANUAL), module_relative=False)
    assert attempted > 30
    assert failed == 0


def test_examples_in_docstrings_run_as_shown():
    failed, attempted = doctest.testmod(ekorn.testing.harnesses)
    assert attempted > 0
    assert failed == 0
