"""How many examples a property gets, by the profile of Hypothesis that `tests/conftest.py` registers."""

from hypothesis import settings

_DEFAULT = 40  # the examples of a property that says nothing, in `make test`


def examples(count: int) -> int:
    """Return `count` in `make test`, a quarter of it in `make test-fast`, and fifty times as many in `make soak`."""
    return max(1, count * settings().max_examples // _DEFAULT)
