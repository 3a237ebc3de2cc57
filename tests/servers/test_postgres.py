"""The PostgreSQL server of the tests ends with the test run, also if that is killed."""

import os
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM = """
import os, signal
from tests.servers.postgres import running_server
with running_server() as server:
    print(server.port, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_test_run_that_is_killed_leaves_no_server():
    with tempfile.TemporaryDirectory() as folder:  # for what a killed run leaves
        os.chmod(folder, 0o755)  # the server's user enters it
        command, variables = [sys.executable, "-c", PROGRAM], {**os.environ, "TMPDIR": folder}
        killed = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert killed.returncode < 0, killed.stderr
        deadline = time.monotonic() + 60
        while is_open(int(killed.stdout)):
            assert time.monotonic() < deadline, "the server still answers"
            time.sleep(0.05)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
