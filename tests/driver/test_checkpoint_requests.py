"""A checkpoint that a user asks for: the request is answered with its number, whatever happens behind it."""

from typing import Any

import pytest

from ekorn.testing.scripted import Crash, Script, run_scripted
from tests.driver.savepoint_programs import EXPECTED, counting, environment, numbers


@pytest.mark.parametrize("point", ["before-notify", "in-notify", "after-notify"])
def test_request_is_answered_although_a_slot_cannot_be_told_of_the_checkpoint(tmp_path, point):
    asked: Any = None
    answered_soon = False

    def ask(handle):
        nonlocal asked
        asked = handle.requests.request_checkpoint()

    def look(handle):
        nonlocal answered_soon
        answered_soon = asked.done()

    script = Script(checkpoints=[False], crashes=[Crash(point, 1)], deeds={2: ask, 5: look})
    run = run_scripted(counting(numbers(environment(tmp_path, restarts=1))), script)
    assert sorted(run.records) == sorted(EXPECTED)
    assert run.engine.restored_ids == [None, 1], "the checkpoint exists"
    assert answered_soon
    assert asked.result(0) == 1
