"""For all tests: where jobs can be reached, and how long properties are searched for counterexamples.

That is little in every run, long under `--hypothesis-profile=soak`.

Under `CI` the examples are the same in every run, so that a change answers for itself only; the search for new ones is
a developer's runs and the soak's.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile("default", deadline=None, max_examples=40, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("soak", deadline=None, max_examples=2_000, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture
def desk_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where jobs of this test can be reached by other processes; it has a short path, as sockets need it."""
    with tempfile.TemporaryDirectory(prefix="t-") as short:
        monkeypatch.setenv("TAMIAS_RUNTIME_DIR", f"{short}/run")
        yield Path(short, "run")
