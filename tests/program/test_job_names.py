"""Names of jobs: which are refused before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from ekorn.common import Configuration
from ekorn.config.settings.job_names import chosen_job_name
from ekorn.dataset import ExecutionEnvironment
from ekorn.datastream import StreamExecutionEnvironment


def streams() -> Any:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).print()
    return env


def data_sets() -> Any:
    env = ExecutionEnvironment.get_execution_environment()
    env.from_elements(1).write_as_text("not-written")
    return env


@pytest.mark.parametrize("drawn", [streams, data_sets])
def test_a_name_with_the_character_nul_is_refused(drawn: Any) -> None:
    with pytest.raises(ValueError, match=r"a job's name cannot contain the character NUL, got 'a\\x00b'"):
        drawn().execute("a\0b")


def test_a_configured_name_with_the_character_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot contain the character NUL"):
        chosen_job_name(None, Configuration().set_string("pipeline.name", "a\0"), "default")


@pytest.mark.parametrize(
    ("given", "configured", "name"), [("a", "b", "a"), (None, "b", "b"), ("", "b", "b"), (None, "", "default")]
)
def test_the_name_in_the_call_comes_before_the_configured_one(given: str | None, configured: str, name: str) -> None:
    assert chosen_job_name(given, Configuration().set_string("pipeline.name", configured), "default") == name
