"""Programs with state have the same outcome on RocksDB as on PyFlink: windows, timers, every kind of state."""

import os

import pytest

from ekorn.config.environment_variables import CONF_DIR
from tests.conformance.recorded_runs import DELIBERATE, differences, recording_of, run
from tests.recorded import program as programs

STATEFUL = ("keyed_", "rolling_", "state_", "timer_", "window_")
UNSPECIFIED = {"state_map_order": "RocksDB has the entries of a map in the order of their bytes"}


@pytest.fixture(autouse=True)
def rocksdb(monkeypatch, tmp_path):
    """Use RocksDB with a cache of a few entries, so that most reads reach it; in memory, if a file system offers it."""
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path
    (tmp_path / "config.yaml").write_text(
        "state.backend.type: rocksdb\n"
        f"state.backend.rocksdb.localdir: {where}\n"
        "state.backend.rocksdb.writebuffer.size: 256kb\n"
        "ekorn.state.rocksdb.cache-size: 64kb\n"
    )
    monkeypatch.setenv(CONF_DIR, str(tmp_path))


def chosen():
    names = [n for n in programs.names() if n.startswith(STATEFUL) and n not in DELIBERATE and n not in UNSPECIFIED]
    loaded = {name: programs.load(name, "ekorn") for name in names}
    return [name for name, program in loaded.items() if program.mode == "STREAMING" and not program.quirk]


@pytest.mark.parametrize("name", chosen())
def test_a_program_gives_what_pyflink_gave(name, capsys):
    recording, program = recording_of(name), programs.load(name, "ekorn")
    found = run(program, capsys)
    if recording["outcome"] == "failure":  # the test on the heap compares the error
        assert found["outcome"] == "failure"
    else:
        assert not differences(recording, found, program.ordered)
