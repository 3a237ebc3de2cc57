"""The mutation runner itself: which tests it finds for a change, and what is listed as equivalent."""

import pytest

from tests.mutation.mutant import Mutant, equivalents, function_at
from tests.mutation.reach import Reach, lines_that_show, moves
from tests.mutation.rooms import SOURCE, words

CODE = """\
LIMIT = 7

class A:
    def f(self, a=3):
        if a < LIMIT:
            return (
                a + 1
            )
        return 2
"""


@pytest.mark.parametrize(("line", "shown_by"), [(5, {5}), (7, {6, 7, 8}), (9, {9}), (4, {5, 6, 7, 8, 9})])
def test_a_change_is_shown_by_whoever_runs_its_statement(line, shown_by):
    assert lines_that_show(CODE, line)[0] == shown_by


def test_a_constant_is_shown_by_whoever_runs_a_function_of_its_module():
    assert lines_that_show(CODE, 1) == [{5, 6, 7, 8, 9}]


def test_a_default_in_a_module_of_values_is_judged_by_every_test():
    code = "class Event:\n    last: bool = False\n"
    reach = Reach()
    reach.add({"seconds": {"slow": 2.0, "quick": 0.1}, "lines": {}})
    mutant = Mutant("m.py", 2, "Event", "swap", "last: bool = False", "last: bool = True", "")
    assert [test.node_id for test in reach.tests_of(mutant, code)] == ["quick", "slow"]


def test_the_tests_that_reach_a_mutant_come_quickest_first():
    reach = Reach()
    reach.add(
        {
            "seconds": {"slow": 2.0, "quick": 0.1, "elsewhere": 0.1},
            "lines": {"m.py": {"slow": [5, 9], "quick": [9], "elsewhere": [5]}},
        }
    )
    mutant = Mutant("m.py", 9, "A.f", "add", "return 2", "return 3", "")
    assert [test.node_id for test in reach.tests_of(mutant, CODE)] == ["quick", "slow"]


def test_lines_are_found_again_where_a_change_has_moved_them():
    assert moves("a\nb\nc\n", "new\na\nc\n") == {1: 2, 3: 3}
    assert moves("a\n", "a\n") is None


def test_the_name_of_a_test_tells_what_it_is_about():
    about = words("job_checkpoints") | words("JobCheckpoints.patience_ms")
    assert about == {"job", "checkpoint", "patience"}
    assert about & words("test_options.py::test_an_epoch_waits_for_the_checkpoint_before") == {"checkpoint"}


def test_a_mutant_knows_the_function_it_is_in():
    assert [function_at(CODE, line) for line in (1, 7)] == ["", "A.f"]


def test_every_listed_equivalent_names_code_that_exists():
    stale = [
        identity
        for identity, _reason in equivalents()
        if identity[2] not in " ".join((SOURCE / identity[0]).read_text(encoding="utf-8").split())
    ]
    assert stale == []
