"""Every thread that ekorn starts is a daemon: a thread that hangs in user code does not keep its process alive."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"


def threads_of(path: Path) -> list[ast.Call]:
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return [call for call in calls if ast.unparse(call.func) in ("threading.Thread", "Thread", "threading.Timer")]


WITH_THREADS = [path for path in sorted(SOURCE.rglob("*.py")) if threads_of(path)]


@pytest.mark.parametrize("path", WITH_THREADS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_thread_is_a_daemon(path: Path) -> None:
    for call in threads_of(path):
        daemon = [ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "daemon"]
        assert daemon == ["True"], f"line {call.lineno}"


def test_threads_are_found() -> None:
    assert len(WITH_THREADS) >= 10
