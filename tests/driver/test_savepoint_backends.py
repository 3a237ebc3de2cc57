"""A savepoint of one state backend is restored in another, at another parallelism, in both formats."""

import pytest

from ekorn.common import Configuration
from ekorn.testing.scripted import Script, run_scripted
from tests.driver.savepoint_programs import EXPECTED, Ask, counting, environment, numbers

BACKENDS = ["hashmap", "rocksdb"]


def program(directory, backend, parallelism=1):
    configuration = Configuration()
    configuration.set_string("state.backend.type", backend)
    env = environment(directory, parallelism=parallelism, data_inline_threshold=0)
    env.configure(configuration)
    return counting(numbers(env, splits=4, runs=(1,)))


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("before", BACKENDS)
@pytest.mark.parametrize("after", BACKENDS)
def test_a_savepoint_restores_in_any_backend(tmp_path, before, after, native):
    ask = Ask(tmp_path / "savepoints", then="stop", native=native)
    first = run_scripted(program(tmp_path / "one", before, 2), Script(deeds={2: ask}))
    second = run_scripted(program(tmp_path / "two", after, 3), restore_path=ask.path)
    assert 0 < len(first.records) < len(EXPECTED)
    assert sorted(first.records + second.records) == sorted(EXPECTED)
