"""What other users of the machine can read of a job on embedded Spark: results alone, as the user's umask says."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.spark.processes import descendants, run_driver

pytestmark = pytest.mark.spark

CANARY = "canary-of-a-record"
NOBODY = 65534

PROGRAM = f"""
import os, sys, time
os.umask(0o022)
from ekorn.common import Configuration, Encoder
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.file_system import FileSink
conf = Configuration()
for setting in sys.argv[1:]:
    conf.set_string(*setting.split("=", 1))
env = StreamExecutionEnvironment.get_execution_environment(conf)
env.set_parallelism(2)
def slowly(n):
    time.sleep(0.01)
    return ({CANARY!r}, n)
stream = env.from_collection(list(range(3000))).map(slowly).key_by(lambda pair: pair[1] % 7)
summed = stream.reduce(lambda a, b: (a[0], a[1] + b[1])).map(str)
summed.sink_to(FileSink.for_row_format(os.environ["RESULTS"], Encoder.simple_string_encoder()).build())
env.execute()
"""


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A temporary directory that all users may read, with a path that leaves room for the names of sockets."""
    path = Path(tempfile.mkdtemp(prefix="e-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def started(scratch: Path, results: Path, *settings: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a job whose driver and Java process have the temporary directory."""
    java = f"spark.driver.extraJavaOptions=-Djava.io.tmpdir={scratch}"
    variables = {"TMPDIR": str(scratch), "RESULTS": str(results)}
    return run_driver(PROGRAM, java, *settings, env=variables | (env or {}))


def shuffled(folder: Path) -> bool:
    """Return whether a shuffle file below a folder has a record of the job."""
    for above, _, names in os.walk(folder):
        for name in names:
            if name.startswith("shuffle_") and name.endswith(".data"):
                with suppress(FileNotFoundError):  # Spark removed it
                    if CANARY.encode() in Path(above, name).read_bytes():
                        return True
    return False


def read_by_another_user(folder: Path) -> list[str]:
    """Return what another user can list or read below a folder: a child of this process becomes that user and tries."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writing, "\n".join(_readable(folder)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as answer:
        found = answer.read().splitlines()
    assert os.waitpid(pid, 0)[1] == 0
    assert str(folder) in found, "the child has looked"
    return [path for path in found if path != str(folder)]


def _readable(folder: Path) -> Iterator[str]:
    for above, _, names in os.walk(folder):  # passes over folders that it cannot list
        yield above
        for name in names:
            with suppress(OSError), open(os.path.join(above, name), "rb"):
                yield os.path.join(above, name)


def open_to_others(folder: Path) -> list[str]:
    """Return the files and folders that another user could read. A socket gives nothing without the right to write."""
    found = []
    for entry in os.scandir(folder):
        mode = entry.stat(follow_symlinks=False).st_mode
        if mode & (0o022 if stat.S_ISSOCK(mode) else 0o077):
            found.append(f"{entry.path} {mode:o}")
    return found


def umask_of(pid: int) -> str:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "0077"  # the process has ended
    return next((line.split()[1] for line in status.splitlines() if line.startswith("Umask:")), "0077")


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_another_user_reads_nothing_of_a_running_job(scratch: Path, tmp_path: Path, backend: str) -> None:
    results = tmp_path / "results"
    driver = started(scratch, results, f"state.backend.type={backend}")
    try:
        limit = time.monotonic() + 180
        while not shuffled(scratch):
            assert driver.poll() is None and time.monotonic() < limit, driver.communicate(timeout=30)[0]
        assert open_to_others(scratch) == []
        assert list(scratch.glob("blockmgr-*")) == [], "Spark has its blocks in a folder that ekorn removes"
        if os.geteuid() == 0:
            assert read_by_another_user(scratch) == []
        assert {umask_of(pid) for pid in descendants(driver.pid)} == {"0077"}
        output, _ = driver.communicate(timeout=180)
        assert driver.returncode == 0, output
        # Only the log stays, for `ekorn logs`; it was looked at above, with all that another user could not read.
        assert [path.name for path in scratch.glob("ekorn-*")] == [f"ekorn-{os.geteuid()}"]
        left = {path.name for path in (scratch / f"ekorn-{os.geteuid()}").rglob("*") if path.is_file()}
        assert left == {"driver.log", "job.json"}
    finally:
        driver.kill()
        driver.wait()
    written = [path for path in results.rglob("*") if path.is_file()]
    assert written and {path.stat().st_mode & 0o777 for path in written} == {0o644}
    assert {path.stat().st_mode & 0o777 for path in (results, *results.rglob("*")) if path.is_dir()} == {0o755}


@pytest.mark.parametrize("by", ["setting", "variable"])
def test_a_folder_for_blocks_that_the_user_names_is_used(scratch: Path, tmp_path: Path, by: str) -> None:
    named = tmp_path / "blocks"
    settings = [f"spark.local.dir={named}"] if by == "setting" else []
    driver = started(
        scratch, tmp_path / "results", *settings, env={} if by == "setting" else {"SPARK_LOCAL_DIRS": str(named)}
    )
    try:
        limit = time.monotonic() + 180
        while not shuffled(named):
            assert driver.poll() is None and time.monotonic() < limit, driver.communicate(timeout=30)[0]
        assert list(scratch.glob("ekorn-blocks-*")) == []
    finally:
        driver.kill()
        driver.wait()
