"""The mutation runner itself: which changes it makes, and which it leaves out."""

import textwrap

import pytest

from tests.mutation.mutant import ANY, equivalents
from tests.mutation.rooms import ROOMS, SOURCE, modules

pytestmark = pytest.mark.soak  # `make soak` and `make mutation` install cosmic-ray, which the import of `mutants` needs


def changes(code):
    from tests.mutation.mutants import every_mutant

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
    from tests.mutation.mutants import sample

    (tmp_path / "m.py").write_text("def f(a, b):\n" + "".join(f"    a.b{i} = b < {i}\n" for i in range(20)))
    first = sample(tmp_path, ["m.py"], seed="1", size=5)
    assert first == sample(tmp_path, ["m.py"], seed="1", size=5)
    assert first != sample(tmp_path, ["m.py"], seed="2", size=5)
    assert len(first) == 5


def test_every_listed_equivalent_is_still_a_mutant():
    from tests.mutation.mutants import every_mutant

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
