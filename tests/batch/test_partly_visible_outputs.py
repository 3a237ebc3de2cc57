"""A sink that cannot be made visible after another one has been: the error says what the user finds."""

import pytest

from ekorn.dataset import ExecutionEnvironment, OutputFormat
from ekorn.errors import OutputsPartlyVisibleError
from ekorn.testing import on_local_engine


class Failing(OutputFormat):
    def open(self, task_number, num_tasks):
        pass

    def write_record(self, record):
        pass

    def finalize_global(self, parallelism):
        raise OSError("no space left")


class Noted(OutputFormat):
    """Notes what it is asked for. The list is that of the driver's process."""

    calls: list[str] = []

    def __init__(self, name):
        self.name = name

    def open(self, task_number, num_tasks):
        pass

    def write_record(self, record):
        pass

    def finalize_global(self, parallelism):
        self.calls.append(f"{self.name} completed")

    def try_cleanup_on_error(self):
        self.calls.append(f"{self.name} removed")


def test_the_error_names_what_is_visible_and_what_is_not(tmp_path):
    Noted.calls.clear()
    with on_local_engine():
        env = ExecutionEnvironment().set_parallelism(1)
        numbers = env.from_elements(1, 2)
        numbers.write_as_text(tmp_path / "first").name("first sink")
        numbers.output(Noted("second")).name("second sink")
        numbers.output(Failing()).name("third sink")
        numbers.output(Noted("fourth")).name("fourth sink")
        numbers.write_as_text(tmp_path / "fifth").name("fifth sink")
        with pytest.raises(OutputsPartlyVisibleError) as caught:
            env.execute()
    error = caught.value
    assert "third sink" in error.failed and error.cause == "OSError: no space left"
    assert len(error.visible) == 2 and "first sink" in error.visible[0] and "second sink" in error.visible[1]
    assert len(error.missing) == 2 and "fourth sink" in error.missing[0] and "fifth sink" in error.missing[1]
    assert (tmp_path / "first").read_text() == "1\n2\n"  # complete, and not removed again
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first"]
    assert Noted.calls == ["second completed", "fourth removed"]


def test_the_only_sink_fails_with_its_own_error(tmp_path):
    with on_local_engine():
        env = ExecutionEnvironment().set_parallelism(1)
        env.from_elements(1).output(Failing())
        with pytest.raises(OSError, match="no space left"):
            env.execute()
