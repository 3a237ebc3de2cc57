"""DataSet programs on Spark. They all run on the one session of the test process."""

import pytest

from ekorn.dataset import ExecutionEnvironment


@pytest.fixture
def env() -> ExecutionEnvironment:
    return ExecutionEnvironment.get_execution_environment().set_parallelism(2)
