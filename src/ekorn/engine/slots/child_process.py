"""A slot process that the driver starts as its own child."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import subprocess

from ekorn.engine.slots.interpreter import Interpreter
from ekorn.errors import DeploymentError
from ekorn.links.link import Address
from ekorn.slot_protocol.slot_config import SlotConfig

_START_S = 60.0


class ChildSlotProcess:
    """Starts a slot process, and keeps the pipe on which its life depends."""

    def __init__(self, config: SlotConfig, interpreter: Interpreter, environment: dict[str, str]) -> None:
        ready, theirs = os.pipe()
        self._ready = ready
        self._process = subprocess.Popen(
            [interpreter.executable, "-m", "ekorn.slot.slot_main"],
            cwd=interpreter.working_directory,
            stdin=subprocess.PIPE,
            pass_fds=(theirs,),
            env=environment | {"EKORN_READY_FD": str(theirs)},
            start_new_session=True,  # ctrl-C is for the driver, which ends its slots in order
        )
        os.close(theirs)
        data = pickle.dumps(config)
        assert self._process.stdin is not None
        self._process.stdin.write(len(data).to_bytes(8, "little") + data)
        self._process.stdin.flush()
        self.pid = self._process.pid
        self._given_up: str | None = None

    def wait_ready(self) -> Address:
        """Wait until the slot listens; return its address.

        Raises:
            DeploymentError: The process ended, or did not listen in time.
        """
        with os.fdopen(self._ready, "rb") as pipe:
            data = _read_within(pipe.fileno(), _START_S)
        if not data:
            raise DeploymentError(f"a slot process did not start: {self.wait_for_end() or 'no answer in time'}")
        address: Address = pickle.loads(data)
        return address

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def wait_for_end(self) -> str | None:
        if self._given_up is not None:
            return f"its process {self.pid} was killed: {self._given_up}"
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(timeout=0.5)
            if code < 0:
                return f"its process {self.pid} was killed by signal {-code}"
            return f"its process exited with {code}"
        return None

    def end(self) -> None:
        """Close the pipe that keeps the slot alive; kill the process if it does not end."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # the slot has closed its end already
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def give_up(self, why: str) -> None:
        """Kill the process, even if it is stopped."""
        self._given_up = why
        self._process.kill()
        self._process.wait()


def _read_within(fd: int, seconds: float) -> bytes:
    """Read a pipe to its end; return nothing if it is silent for that long."""
    data = b""
    while select.select([fd], [], [], seconds)[0]:
        part = os.read(fd, 65536)
        if not part:
            return data
        data += part
    return b""
