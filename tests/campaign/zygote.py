"""Starts driver processes fast: a process imports everything once, and forks each driver.

`Zygote` is the tests' side. The process reads one JSON object a line (arguments, environment and output files of a
driver) and answers with its process id and, when the driver ends, with its exit code.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]


class Zygote:
    """The process that drivers are forked from.

    Args:
        on_spark: The drivers use Spark: import PySpark once for all of them.
    """

    def __init__(self, *, on_spark: bool = False) -> None:
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.campaign.zygote", *(["pyspark.sql"] if on_spark else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path},
            text=True,
        )
        self._started: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._ended: dict[int, int] = {}
        self._news = threading.Condition()
        self._forking = threading.Lock()
        threading.Thread(target=self._listen, daemon=True).start()

    def fork(self, arguments: str, environment: dict[str, str], output: Path, log: Path) -> int:
        """Start a driver; return its process id."""
        request = {"arguments": arguments, "environment": environment, "output": str(output), "log": str(log)}
        assert self._process.stdin is not None
        with self._forking:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return self._started.get(timeout=60)

    def how_it_ended(self, pid: int, within_s: float = 0.0) -> int | None:
        """Return the exit code of a driver, negative for a signal; None while it runs."""
        with self._news:
            self._news.wait_for(lambda: pid in self._ended, within_s)
            return self._ended.get(pid)

    def close(self) -> None:
        """End the process. Drivers that still run are left to their callers."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            news = json.loads(line)
            if "started" in news:
                with self._news:
                    self._ended.pop(news["started"], None)  # an earlier driver had the same process id
                self._started.put(news["started"])
            else:
                with self._news:
                    self._ended[news["ended"]] = news["code"]
                    self._news.notify_all()


def main() -> None:
    """Run the process. It has one thread, so that a fork of it is an ordinary process."""
    import tests.campaign.driver  # noqa: F401 - imported once for all drivers

    for module in sys.argv[1:]:
        importlib.import_module(module)
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    selector.register(woken, selectors.EVENT_READ)
    waiting = b""
    while True:
        for key, _ in selector.select():
            if key.fd == woken:
                os.read(woken, 4096)
                _reap()
                continue
            data = os.read(0, 65536)
            if not data:
                return
            *lines, waiting = (waiting + data).split(b"\n")
            for line in lines:
                _answer(started=_fork(json.loads(line)))


def _reap() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _answer(ended=pid, code=os.waitstatus_to_exitcode(status))


def _answer(**news: Any) -> None:
    os.write(1, json.dumps(news).encode() + b"\n")


def _fork(request: dict[str, Any]) -> int:
    pid = os.fork()
    return pid if pid else _be_driver(request)


def _be_driver(request: dict[str, Any]) -> NoReturn:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for path, descriptor in (("/dev/null", 0), (request["output"], 1), (request["log"], 2)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.closerange(3, 256)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    os.environ.update(request["environment"])
    tempfile.tempdir = None  # to be looked up again: TMPDIR may have changed
    sys.argv = ["driver", request["arguments"]]
    code = 1
    try:
        import tests.campaign.driver

        tests.campaign.driver.main()
        code = 0
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
