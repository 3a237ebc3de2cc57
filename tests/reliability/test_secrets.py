"""No secret of a job appears in a command line, environment, report, error or file.

Logs, metadata and the errors of storages are checked in `tests/driver/test_storage_by_url.py` and
`tests/storage/test_remote_files.py`; here are the processes of a job that runs, and everything when it fails.
"""

from __future__ import annotations

import logging
import os
import pickle
from pathlib import Path

import pytest

from ekorn.common import Configuration
from ekorn.datastream import MapFunction
from ekorn.engine.spark.task_side.level_task import LevelTask
from ekorn.errors import JobExecutionError
from ekorn.operators.epoch import EpochOrder
from ekorn.slot_protocol.slot_config import DriverContact, SlotConfig
from ekorn.testing.process_engine import process_engine
from ekorn.testing.slot_processes import slot_processes
from tests.live_jobs import engines, environment, generated, parent_of, tallied, until
from tests.s3_server import ACCESS_KEY, SECRET_KEY, s3_endpoint, s3_url  # noqa: F401


class Failing(MapFunction):
    """Fails as soon as a file exists."""

    def __init__(self, switch: Path) -> None:
        self.switch = switch

    def map(self, value):
        if self.switch.exists():
            raise ValueError("on purpose")
        return value


def descendants() -> list[int]:
    """Return the processes that this process has started, and those that they have started."""
    parents = {int(path.name): parent_of(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdigit()}
    found, queue = [], [os.getpid()]
    while queue:
        children = [pid for pid, parent in parents.items() if parent == queue[0]]
        found += children
        queue = queue[1:] + children
    return found


def told(pid: int) -> bytes:
    """Return the command line of a process, which all users can read, and its environment."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def test_a_failing_job_shows_no_secret(
    s3_url,  # noqa: F811
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    env = environment(s3_url("secrets"), parallelism=2)
    switch = tmp_path / "fail"
    tallied(generated(env, None, per_second=1_000).map(Failing(switch)), 7).filter(lambda r: False).print()
    with engines(lambda graph: process_engine(graph, slot_processes(graph.slot_count, registering=True))) as made:
        client = env.execute_async("failing")
        until(lambda: client.get_progress().checkpoints_completed >= 1)
        slots = {*client.get_progress().slot_pids, *descendants()}
        assert slots
        processes = b"".join(told(pid) for pid in slots)
        slot_secret = made[0].pool.secret
        switch.touch()
        reports = repr(client.get_progress()) + repr(client.get_metrics())
        with pytest.raises(JobExecutionError, match="on purpose") as raised:
            client.get_job_execution_result().result()
    printed = "".join(capfd.readouterr())
    texts = {
        "processes": processes,
        "reports": reports.encode(),
        "the error": str(raised.value).encode() + pickle.dumps(raised.value),
        "the log": caplog.text.encode(),
        "what was printed": printed.encode(),
    }
    secrets = [ACCESS_KEY.encode(), SECRET_KEY.encode(), slot_secret, slot_secret.hex().encode()]
    assert [where for where, text in texts.items() for secret in secrets if secret in text] == []
    assert repr(slot_secret)[2:-1] not in caplog.text


def test_a_printed_configuration_hides_secret_values() -> None:
    configuration = Configuration()
    keys = ["s3.secret-key", "ssl.key-password", "auth.token", "fs.azure.account.key.mine", "service.apikey"]
    for number, key in enumerate(keys):
        configuration.set_string(key, f"canary-{number}")
    configuration.set_string("parallelism.default", "7")
    for shown in (str(configuration), repr(configuration)):
        assert "canary" not in shown
        assert "7" in shown and all(key in shown for key in keys)
    assert configuration.get_string(keys[0], "") == "canary-0"


def test_what_carries_the_secret_of_a_job_is_shown_without_it() -> None:
    secret = b"canary of the job"
    config = SlotConfig(0, ("", 0), secret, "/folder", [])
    contact = DriverContact(("127.0.0.1", 1), secret, 1.0)
    task = LevelTask(0, (), 1, {}, secret, 0, EpochOrder(0), repeatable=False)
    for shown in (repr(config), repr(contact), repr(task)):
        assert "canary" not in shown
