"""The mutation runner itself: which changes it makes, which it leaves out, and which tests it finds for them."""

import textwrap

import pytest

pytest.importorskip("cosmic_ray", reason="pip install -e '.[mutation]'")

from tests.mutation.__main__ import ROOMS, SOURCE, modules, words
from tests.mutation.mutants import ANY, equivalents, every_mutant, function_at, sample
from tests.mutation.reach import Reach, lines_that_show, moves


def changes(code):
    return {(mutant.before, mutant.after) for mutant in every_mutant("m.py", textwrap.dedent(code))}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("file.sync()", "pass"),
        ("self.done = True", "pass"),
        ("self.done = True", "self.done = False"),
        ("if a < b:", "if a <= b:"),
        ("if a < b:", "if a >= b:"),
        ("if a < b:", "if not a < b:"),
        ("return [x for x in y if x in z]", "return [x for x in y if x not in z]"),
        ("return [x for x in y if x in z]", "return [x for x in y if not (x in z)]"),
        ("return min(a, b)", "return max(a, b)"),
        ("for x in y:", "for x in []:"),
        ("except OSError:", "except CosmicRayTestingException:"),
        ("except a.B as b:", "except CosmicRayTestingException as b:"),
        ("except (OSError, a.B):", "except (CosmicRayTestingException, a.B):"),
        ("except (OSError, a.B):", "except (OSError, CosmicRayTestingException):"),
        ("return a + 1", "return a - 1"),
        ("return a + 1", "return a + 2"),
    ],
)
def test_a_mutant_changes_what_the_code_does(before, after):
    block = f"{before}\n        pass" if before.endswith(":") else before
    if before.startswith("except"):
        block = f"try:\n        a.b\n    {block}"
    assert (before, after) in changes(f"def f(self, a, b, x, y, z):\n    {block}\n")


@pytest.mark.parametrize(
    "code",
    [
        "def f(a: int | None = None) -> int | None: ...",
        "x: int | None",
        "Event = Begun | Ended",
        "@dataclass(frozen=True)\nclass A: ...",
        "def f(a):\n    assert a > 1",
        "def f(a):\n    _log.info('%s', a + 1)",
        "def f(a):\n    point('epoch', a + 1)",
        "def f(a):\n    assert_never(a)",
        "def f(a, b):\n    return zip(a, b, strict=True)",
        "def __repr__(self):\n    return str(self.a + 1)",
        "def f(self):\n    return self._cell[0]",
        "def f(a):\n    return Thread(target=a, daemon=True)",
        "_CHUNK_ENTRIES = 5",
        "def f(a, timeout_s=5): ...",
        "_POLL_MS = 5",
        "class A:\n    wait_s: float = 5.0",
        "if TYPE_CHECKING:\n    a = 1",
    ],
)
def test_what_no_test_can_judge_is_left_alone(code):
    assert changes(code) == set()


def test_a_seed_draws_the_same_mutants_again(tmp_path):
    (tmp_path / "m.py").write_text("def f(a, b):\n" + "".join(f"    a.b{i} = b < {i}\n" for i in range(20)))
    first = sample(tmp_path, ["m.py"], seed="1", size=5)
    assert first == sample(tmp_path, ["m.py"], seed="1", size=5)
    assert first != sample(tmp_path, ["m.py"], seed="2", size=5)
    assert len(first) == 5


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
    mutant = next(every_mutant("m.py", code))
    assert [test.node_id for test in reach.tests_of(mutant, code)] == ["quick", "slow"]


def test_the_tests_that_reach_a_mutant_come_quickest_first():
    reach = Reach()
    reach.add(
        {
            "seconds": {"slow": 2.0, "quick": 0.1, "elsewhere": 0.1},
            "lines": {"m.py": {"slow": [5, 9], "quick": [9], "elsewhere": [5]}},
        }
    )
    mutant = next(mutant for mutant in every_mutant("m.py", CODE) if mutant.line == 9)
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


def test_every_listed_equivalent_is_still_a_mutant():
    listed = [identity for identity, reason in equivalents() if reason]
    paths = {path for room in ROOMS for path in modules(room)}
    possible = set()
    for path in {path for path, *_rest in listed} & paths:
        code = (SOURCE / path).read_text()
        changed = [before for file, _function, before, _after in listed if file == path]
        at = {number for number, line in enumerate(code.splitlines(), 1) if " ".join(line.split()) in changed}
        for mutant in every_mutant(path, code, at):
            possible |= {mutant.identity, (*mutant.identity[:3], ANY)}
    assert [identity for identity in listed if identity not in possible] == []
