"""For all tests: marks by path, the folder where jobs are reached, and how long Hypothesis searches.

Hypothesis searches briefly by default, more briefly under `--hypothesis-profile=fast` (`make test-fast`) and long under
`--hypothesis-profile=soak` (`make soak`). Under `CI` the examples are the same in every run, so that a change is judged
by itself alone; new examples are searched for on developers' machines and by the soak.
"""

import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile("default", deadline=None, max_examples=40, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("fast", settings.get_profile("default"), max_examples=10)
settings.register_profile("soak", settings.get_profile("default"), max_examples=2_000)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

TESTS = Path(__file__).parent
# Marks that whole folders and files have, so that `-m` selects by them: `make test-fast` leaves all of them out.
MARKED = {
    "spark": ["spark", "journeys", "dataset/spark"],
    "long": [
        "campaign",
        "reliability",
        "cli/test_running_jobs.py",
        "connectors/kafka/with_broker",
        "conformance/test_recorded_with_crashes.py",
        "driver/test_storage_by_url.py",
        "engine/test_savepoints_of_processes.py",
        "operators/async_io/test_kills.py",
        "service/test_changes.py",
        "service/test_commands.py",
        "service/test_jobs.py",
        "slot/test_slot_processes.py",
    ],
    "heavy": [
        "connectors/lakes/test_iceberg.py",
        "connectors/lakes/test_partitions.py",
        "driver/test_cleanup.py",
        "driver/test_clock_jumps.py",
        "driver/test_lives.py",
        "driver/test_rocksdb_jobs.py",
        "engine/test_registering_pool.py",
        "pyflink/test_kafka_examples.py",
        "services/test_postgres.py",
        "test_package.py",
    ],
}
# Fixtures that start a whole service. A fixture that asks for them by name marks its parameter itself.
SERVICES = {"s3_endpoint", "postgres_server"}


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test the marks of the folder or file it is in, and `heavy` to those that need a service."""
    for mark, names in MARKED.items():
        places = [TESTS / name for name in names]
        if missing := [str(place) for place in places if not place.exists()]:
            raise pytest.UsageError(f"tests/conftest.py marks tests that do not exist: {', '.join(missing)}")
        marked = {path for path in {item.path for item in items} if any(map(path.is_relative_to, places))}
        for item in items:
            if item.path in marked:
                item.add_marker(mark)
    for item in items:
        if not SERVICES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("heavy")


def pytest_collection_finish() -> None:
    """Exempt modules and tests, which live until the end, from the collections of garbage in tests."""
    gc.freeze()


@pytest.fixture
def desk_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Name a folder of this test's own where other processes reach its jobs; the path is short, as sockets need it."""
    with tempfile.TemporaryDirectory(prefix="t-") as short:
        monkeypatch.setenv("TAMIAS_RUNTIME_DIR", f"{short}/run")
        yield Path(short, "run")
