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
    "spark": ["spark", "journeys", "batch/spark"],
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
        "batch/test_execute_async.py",
        "checkpoint/test_protocol.py",
        "conformance/test_continuous.py",
        "conformance/test_epochs_and_crashes.py",
        "conformance/test_recorded_in_slots.py",
        "conformance/test_recorded_on_rocksdb.py",
        "conformance/test_savepoints_anywhere.py",
        "conformance/test_several_checkpoints.py",
        "conformance/test_unaligned.py",
        "connectors/formats/test_schema_registry.py",
        "connectors/lakes/test_delta.py",
        "connectors/lakes/test_iceberg.py",
        "connectors/lakes/test_partitions.py",
        "connectors/test_connector_pages.py",
        "driver/test_cleanup.py",
        "driver/test_clock_jumps.py",
        "driver/test_elasticity.py",
        "driver/test_job_outcome.py",
        "driver/test_lives.py",
        "driver/test_rescaling.py",
        "driver/test_rocksdb_jobs.py",
        "engine/test_registering_pool.py",
        "engine/test_slot_requests.py",
        "engine/test_spark_source_input.py",
        "links/test_link.py",
        "manual/test_notebook.py",
        "manual/test_pages.py",
        "manual/test_pictures.py",
        "manual/test_synopses.py",
        "pyflink/test_kafka_examples.py",
        "pyflink/test_scripts.py",
        "queryable/test_queries.py",
        "queryable/test_schedules.py",
        "reporters/test_reporters.py",
        "rest/test_inspection.py",
        "rest/test_job_socket.py",
        "rest/test_reading.py",
        "rest/test_state.py",
        "servers/test_postgres.py",
        "service/test_starting_again.py",
        "state/test_rocksdb_memory.py",
        "state_processor/test_round_trips.py",
        "state_processor/test_state_commands.py",
        "test_examples.py",
        "test_gallery.py",
        "test_package.py",
        "web/test_gate.py",
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
def runtime_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Name a folder of this test's own where other processes reach its jobs; the path is short, as sockets need it."""
    with tempfile.TemporaryDirectory(prefix="t-") as short:
        monkeypatch.setenv("EKORN_RUNTIME_DIR", f"{short}/run")
        yield Path(short, "run")
