"""The Python daemon of sessions that ekorn starts: where it is used, and what it imports before it forks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ekorn.engine.spark import python_daemon
from ekorn.engine.spark.driver_side.worker_daemon import (
    FOR_LEVELS,
    FOR_TRANSPORT,
    imports_in_advance,
    java_finds_daemon,
    set_daemon,
)
from ekorn.engine.spark.python_daemon.ekorn_pyspark.daemon import MODULES

FOLDER = str(Path(python_daemon.__file__).parent)
SETTING = "spark.python.daemon.module"


@pytest.mark.parametrize(
    ("given", "path_of_java", "chosen"),
    [
        ({"spark.master": "local[4]"}, f"/home/ada{os.pathsep}{FOLDER}", "ekorn_pyspark.daemon"),
        ({"spark.master": "local[4]", SETTING: "ada.daemon"}, FOLDER, "ada.daemon"),
        ({"spark.master": "local[4]"}, "/home/ada", None),  # a Java process that somebody else started
        ({"spark.master": "local[4]"}, None, None),
        ({"spark.master": "spark://host:7077"}, FOLDER, None),  # its executors do not have the folder
        ({"spark.master": "local-cluster[2,1,512]"}, FOLDER, None),
    ],
)
def test_the_daemon_is_set_where_every_python_finds_it(
    given: dict[str, str], path_of_java: str | None, chosen: str | None
) -> None:
    set_daemon(given, path_of_java)
    assert given.get(SETTING) == chosen


@pytest.mark.parametrize("before", [None, "/home/ada"])
def test_only_the_java_process_gets_the_folder_of_the_daemon(
    monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    if before is None:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONPATH", before)
    with java_finds_daemon():
        assert os.environ["PYTHONPATH"].split(os.pathsep) == [*([before] if before else []), FOLDER]
    assert os.environ.get("PYTHONPATH") == before


@pytest.mark.parametrize("modules", [FOR_TRANSPORT, FOR_LEVELS])
def test_the_daemon_has_one_thread_after_it_has_imported_the_modules_of_our_tasks(modules: tuple[str, ...]) -> None:
    with daemon(modules) as process:
        assert command(process) == "ekorn_pyspark.daemon"
        assert threads(process) == 1


def test_a_module_that_starts_a_thread_is_imported_by_each_worker_instead(tmp_path: Path) -> None:
    (tmp_path / "with_thread.py").write_text("import threading\nthreading.Thread(target=input, daemon=True).start()\n")
    with daemon(("with_thread",), str(tmp_path)) as process:
        assert command(process) == "pyspark.daemon"
        assert threads(process) == 1


def test_a_module_that_cannot_be_imported_leaves_a_daemon_that_works() -> None:
    with daemon(("no_such_module",)) as process:
        assert command(process) == "pyspark.daemon"


def test_a_python_whose_tasks_name_no_modules_imports_nothing_of_ekorn() -> None:
    program = "import sys, ekorn_pyspark.daemon; print(*(name for name in sys.modules if name.startswith('ekorn')))"
    shown = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": FOLDER},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert shown.stdout.split() == ["ekorn_pyspark", "ekorn_pyspark.daemon"]


@contextmanager
def daemon(modules: tuple[str, ...], *path: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a daemon as Spark does, and wait until it listens."""
    variables = {"PYTHONPATH": os.pathsep.join([FOLDER, *path]), MODULES: ",".join(modules), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "ekorn_pyspark.daemon", "pyspark.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={key: value for key, value in os.environ.items() if not key.startswith("COV")} | variables,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert len(process.stdout.read(4)) == 4  # its port
        yield process
    finally:
        process.stdin.close()  # Spark ends the daemon so
        process.wait(timeout=30)
        process.stdout.close()


def command(process: subprocess.Popen[bytes]) -> str:
    """Return the module that the process runs by now."""
    return Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[2].decode()


def threads(process: subprocess.Popen[bytes]) -> int:
    return len(os.listdir(f"/proc/{process.pid}/task"))


def test_the_processes_of_one_kind_of_task_are_told_apart_by_their_environment() -> None:
    environment = os.environ | {MODULES: ",".join(FOR_TRANSPORT)}
    command = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()  # it runs the program, and no longer what forked it
        assert imports_in_advance(process.pid, FOR_TRANSPORT)
        assert not imports_in_advance(process.pid, FOR_LEVELS)
        process.stdin.close()
