"""The ports of a running job ignore peers that do not know its secret, and the job goes on undisturbed."""

from __future__ import annotations

import ast
import os
import pickle
import random
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ekorn.testing.process_engine import process_engine
from ekorn.testing.slot_processes import slot_processes
from tests.live_jobs import Held, PickleBomb, doors, engines, environment, expected_tally, generated, tallied, until

KEYS = 7


def saying(what: bytes) -> Callable[[bytes], bytes]:
    """Return what `visit` calls to say always the same."""
    return lambda greeting: what


def visit(address: tuple[str, int], say: Callable[[bytes], bytes]) -> bytes:
    """Connect, read the greeting, and send something; return all that comes back until the connection is closed."""
    with socket.create_connection(address, timeout=30) as stranger:
        heard = stranger.recv(40, socket.MSG_WAITALL)
        try:
            stranger.sendall(say(heard))
            stranger.shutdown(socket.SHUT_WR)
            while part := stranger.recv(65536):
                heard += part
        except OSError:
            pass  # the listener closed the connection while we were sending
        return heard


def test_a_running_job_ignores_strangers_at_all_its_ports(tmp_path: Path) -> None:
    env = environment(tmp_path / "checkpoints", parallelism=2, restarts=3)
    records = 1_500
    held = Held(tmp_path, records // 3, per_second=1_000)
    stream = tallied(generated(env, records, held), KEYS)
    mark = tmp_path / "exploded"
    bomb = pickle.dumps(PickleBomb(mark))
    framed = len(bomb).to_bytes(8, "little") + bomb
    chance = random.Random(30)
    with engines(lambda graph: process_engine(graph, slot_processes(graph.slot_count, registering=True))) as made:
        collected = stream.execute_and_collect()
        client = collected.job_client
        until(lambda: client.get_progress().checkpoints_completed >= 1)
        recorded = [visit(door, lambda greeting: b"c" * 32) for door in doors(made[0])]
        for number, door in enumerate(doors(made[0])):
            for said in (b"", bomb, framed, b"c" * 32 + framed, b"c" * 64 + framed, chance.randbytes(5_000)):
                heard = visit(door, saying(said))
                # A greeting, a challenge and, after our challenge, a proof that is useless anywhere else.
                assert len(heard) <= 40 + 32, "a stranger was told more than the handshake"
            proof = recorded[number][40:]
            assert len(visit(door, saying(b"c" * 32 + proof + framed))) <= 72, "replayed"
            assert len(visit(door, lambda greeting: greeting[8:] + greeting[8:] + framed)) <= 72, "sent back"
        crowd = [socket.create_connection(chance.choice(doors(made[0]))) for _ in range(400)]
        read = client.get_progress().records_read
        held.let_go()
        until(lambda: client.get_progress().records_read > read + 50)  # the job does not wait for the strangers
        for one in crowd:
            one.close()
        found = list(collected)
    assert sorted(found) == sorted(expected_tally(records, KEYS))
    assert client.get_progress().restarts == 0
    assert not mark.exists()


DRIVER = """
import resource
import sys
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
from pathlib import Path
from ekorn.testing.process_engine import process_engine
from ekorn.testing.slot_processes import slot_processes
from tests.live_jobs import Held, doors, engines, environment, expected_tally, generated, tallied
env = environment(sys.argv[1], parallelism=2, restarts=10)
held = Held(Path(sys.argv[1]), 250)
stream = tallied(generated(env, 2_000, held), 7)
with engines(lambda graph: process_engine(graph, slot_processes(graph.slot_count, registering=True))) as made:
    rows = stream.execute_and_collect()
    found = [next(rows)]
    print([doors(made[0]), made[0].slot_pids], flush=True)
    sys.stdin.readline()
    held.let_go()
    found += rows
assert sorted(found) == sorted(expected_tally(2_000, 7))
print("EXACT", rows.job_client.get_progress().restarts, flush=True)
"""


def test_a_job_crowded_by_silent_strangers_still_replaces_a_lost_slot(tmp_path: Path) -> None:
    """1,300 strangers connect and say nothing, where a process may have 200 descriptors; then a slot is killed."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard := resource.getrlimit(resource.RLIMIT_NOFILE)[1]), hard))
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    crowd: list[socket.socket] = []
    try:
        assert driver.stdout is not None
        addresses, slots = ast.literal_eval(driver.stdout.readline())
        for number in range(1_300):
            crowd.append(socket.create_connection(addresses[number % len(addresses)], timeout=60))
        os.kill(slots[0], signal.SIGKILL)
        output, _ = driver.communicate("\n", timeout=120)
        assert output.startswith("EXACT ") and int(output.split()[1]) >= 1, output
    finally:
        driver.kill()
        for sock in crowd:
            sock.close()
