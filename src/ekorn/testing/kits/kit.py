"""`Kit`: promises as test methods, run by pytest in a subclass, or by `check` without pytest.

A promise that is broken raises `AssertionError` with a message that needs no rewriting by pytest.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

__all__ = ["Kit", "for_each", "promise", "raised", "same_records"]

F = TypeVar("F", bound=Callable[..., Any])
_VALUES = "values_of_kit"


def for_each(**values: Iterable[Any]) -> Callable[[F], F]:
    """Run a promise once for every combination of these values of its parameters."""

    def mark(function: F) -> F:
        setattr(function, _VALUES, {name: tuple(given) for name, given in values.items()})
        return function

    return mark


class Kit:
    """Tests of one implementation. Every method whose name begins with `test_` is a promise.

    A promise has one parameter for what is tested: `case`, or `make_case` if it needs several. With pytest, a subclass
    has a fixture of that name. Without pytest, `check` calls every promise.
    """

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Give pytest the values of `for_each`. pytest calls this method itself."""
        for name, values in getattr(metafunc.function, _VALUES, {}).items():
            metafunc.parametrize(name, values)

    @classmethod
    def check(cls, make_case: Callable[[], Any]) -> None:
        """Check every promise, each on new cases.

        Args:
            make_case: Returns a new case at every call.

        Raises:
            AssertionError: A promise is broken. The message says which one, and how.
        """
        for name, function in _promises(cls):
            values = getattr(function, _VALUES, {})
            (subject,) = [p for p in inspect.signature(function).parameters if p != "self" and p not in values]
            for combination in itertools.product(*values.values()):
                chosen = dict(zip(values, combination, strict=True))
                given = {subject: make_case if subject == "make_case" else make_case(), **chosen}
                try:
                    getattr(cls(), name)(**given)
                except AssertionError as broken:
                    raise AssertionError(f"{_sentence(name, chosen)}: {broken}") from broken
                except Exception as error:
                    error.add_note(f"while checking: {_sentence(name, chosen)}")
                    raise


def promise(kept: object, broken: str) -> None:
    """Raise unless a promise is kept.

    Raises:
        AssertionError: With the sentence `broken`.
    """
    if not kept:
        raise AssertionError(broken)


def same_records(found: Counter[Any], wanted: Counter[Any], where: str) -> None:
    """Compare records, in any order.

    Raises:
        AssertionError: Records are missing or repeated. The message shows the first ones.
    """
    missing, more = wanted - found, found - wanted
    if missing or more:
        raise AssertionError(
            f"{where}: {missing.total()} records are missing{_first(missing)}, "
            f"{more.total()} are too many{_first(more)}"
        )


def raised(kind: type[BaseException], says: str, step: Callable[[], object]) -> None:
    """Demand that a step raises.

    Args:
        kind: The class of the error.
        says: A regular expression that its message contains; empty for any message.
        step: What is called.

    Raises:
        AssertionError: The step raises nothing, or another message.
    """
    try:
        step()
    except kind as error:
        promise(re.search(says, str(error)), f"the message {str(error)!r} does not match {says!r}")
    else:
        raise AssertionError(f"{kind.__name__} is not raised")


def _promises(kit: type[Kit]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Return the promises of a kit, those of its bases first, in the order of their definition."""
    names = [name for base in reversed(kit.__mro__) for name in vars(base) if name.startswith("test_")]
    for name in dict.fromkeys(names):
        yield name, getattr(kit, name)


def _sentence(name: str, chosen: dict[str, Any]) -> str:
    words = name.removeprefix("test_").replace("_", " ")
    return f"{words} ({', '.join(f'{key}={value!r}' for key, value in chosen.items())})" if chosen else words


def _first(records: Counter[Any]) -> str:
    shown = ", ".join(str(record)[:80] for record in itertools.islice(records, 3))
    return f" ({shown}{', ...' if len(records) > 3 else ''})" if records else ""
