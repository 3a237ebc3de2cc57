"""The whole message about each first mistake, as `golden_messages/` records it; `mistakes.py` says how to record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.program import mistakes


@pytest.mark.parametrize("name", mistakes.names())
def test_the_message_about_a_mistake_is_the_recorded_one(name: str, tmp_path: Path) -> None:
    assert mistakes.said_by(name, tmp_path) == mistakes.read(name).said


@pytest.mark.parametrize("name", mistakes.names())
def test_a_message_shows_no_line_of_ekorn_and_no_number_for_the_end_of_time(name: str) -> None:
    said = mistakes.read(name).said
    assert said and 'File "ekorn/' not in said and "<chain" not in said
    assert str(2**63 - 1) not in said
