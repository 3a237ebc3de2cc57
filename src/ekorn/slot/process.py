"""The life of a slot process: reads its configuration, serves, and ends with its driver.

A slot lives exactly as long as the driver wants. On the driver's machine its standard input is a pipe that only the
driver holds; on a cluster it opens a connection to the driver, who sends heartbeats there. When that pipe or connection
ends, however the driver ended, or the heartbeats stay away for `heartbeat.timeout`, so does the slot.

On a cluster a slot also ends with the executor beside which it was started, because it uses the executor's memory,
cores and files (docs/decisions/0023-slots-and-executors.md). It has a folder of its own there. If the slot is killed,
the next slot that starts on the machine removes the folder.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import pickle
import select
import signal
import socket
import sys
import threading
from dataclasses import replace
from typing import BinaryIO, NoReturn, TextIO, cast

from ekorn.extras import set_host_of_slot
from ekorn.garbage import collect_by_growth
from ekorn.links.link import Address, connect
from ekorn.slot.garbage import ProcessGarbage
from ekorn.slot.recent_log import RecentLog, RecentOutput
from ekorn.slot.slot_server import SlotServer
from ekorn.slot_protocol.slot_config import Registration, SlotConfig, Welcome
from ekorn.storage.private_folder import create_private_file
from ekorn.storage.scratch_folders import LocalFolder
from ekorn.types.by_value import dumps

_log = logging.getLogger(__name__)
_SWITCH_S = 0.0005  # the interval of slots whose state is queried


def main() -> None:
    """Read the configuration from standard input, then serve until the driver is gone."""
    pipe = sys.stdin.buffer
    length = int.from_bytes(pipe.read(8), "little")
    config: SlotConfig = pickle.loads(pipe.read(length))
    sys.path[:] = config.python_path
    set_host_of_slot(socket.gethostname())
    os.environ["PYTHONPATH"] = os.pathsep.join(config.python_path)  # for processes that user code starts
    own = LocalFolder(config.folder, "ekorn-slot-") if config.driver is not None else None
    if own is not None:
        config = replace(config, folder=own.path, log_file=os.path.join(own.path, "slot.log"))
        create_private_file(os.path.join(own.path, "slot.log"))
    logging.basicConfig(
        filename=config.log_file, level=logging.INFO, format=f"%(asctime)s slot {config.slot} %(levelname)s %(message)s"
    )
    log = RecentLog()
    log.setFormatter(logging.getLogger().handlers[0].formatter)
    logging.getLogger().addHandler(log)
    sys.stdin = open(os.devnull)  # noqa: SIM115 - user code that reads standard input finds it empty, for good
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A line is written when it is printed, also to a file or a pipe: the slot may be killed.
        sys.stdout.reconfigure(line_buffering=True)
    output = RecentOutput(sys.stdout)
    sys.stdout = cast(TextIO, output)
    try:
        _serve(config, pipe, log, output)
    finally:
        own.close() if own is not None else _remove_if_empty(config.folder)
    _end_group()


def _serve(config: SlotConfig, pipe: BinaryIO, log: RecentLog, output: RecentOutput) -> None:
    """Serve until the driver, or the executor beside the slot, is gone."""
    lifeline = connect(config.driver, config.secret) if config.driver is not None else None
    if lifeline is not None:
        lifeline.settimeout(config.driver_timeout_s)  # a host that vanishes does not close its connections
        welcome: Welcome = pickle.loads(lifeline.receive())
        address = (lifeline.local_host(), 0)  # the interface that the driver can reach
        config = replace(config, address=address, certificate=welcome.certificate)
    server = SlotServer(config, ProcessGarbage(), log, output, queried=_switch_often)
    collect_by_growth(server.ended, server.memory_watch(_end_group).look)
    server.start()
    if lifeline is not None:
        me = Registration(config.slot, server.address, socket.gethostname(), os.getpid(), config.generation)
        lifeline.send(dumps(me))
    else:
        _print_ready(server.address)

    def watch_driver() -> None:
        with contextlib.suppress(OSError, EOFError):
            while lifeline is not None:
                lifeline.receive()  # a heartbeat of the driver
            pipe.read()
        server.ended.set()

    threading.Thread(target=watch_driver, name="driver-watch", daemon=True).start()
    if config.executor_pid is not None:
        watched = (config.executor_pid, server.ended)
        threading.Thread(target=_watch_executor, args=watched, name="executor-watch", daemon=True).start()
    server.ended.wait()
    server.stop()


def _end_group() -> NoReturn:
    """End the process, although user code may have left threads behind, and all processes that user code forked."""
    if os.getpgrp() == os.getpid():  # started by ekorn: the group has this process and its children alone
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def _switch_often() -> None:
    """Let a thread that answers queries run soon, although user code computes: Python makes it wait 5 ms by default."""
    sys.setswitchinterval(_SWITCH_S)


def _watch_executor(pid: int, ended: threading.Event) -> None:
    """Set the event when a process ends."""
    try:
        select.select([os.pidfd_open(pid)], [], [])
    except ProcessLookupError:
        pass  # the executor ended while the slot started
    except (OSError, AttributeError) as error:  # an old kernel, or no Linux
        _log.info("the slot cannot watch its executor, and keeps running if the executor ends: %s", error)
        return
    _log.info("the slot ends with its executor, process %d", pid)
    ended.set()


def _print_ready(address: Address) -> None:
    """Write the address to the file descriptor that the parent passed on."""
    fd = int(os.environ.pop("EKORN_READY_FD"))
    with os.fdopen(fd, "wb") as ready:
        ready.write(pickle.dumps(address))


def _remove_if_empty(folder: str) -> None:
    """Remove the folder that the slots of a local job share. If the driver is gone, the last slot finds it empty."""
    with contextlib.suppress(OSError):
        os.rmdir(folder)
