"""A PostgreSQL server on loopback, on a free port, for the length of a test session.

The binaries are Debian's package `postgresql`; `make postgres` installs it. Import `postgres_server` and
`postgres_url` into a conftest or a test module: `postgres_url` is the JDBC URL of an empty database of the test's own.
A machine without the binaries fails the tests, so that no test run passes without its database.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import psycopg
import pytest

from tests.servers.ports import free_ports

USER = "ekorn"
PASSWORD = "canary-Pg7-secret"
_PR_SET_PDEATHSIG = 1  # of prctl(2)
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # the server may be killed, the machine is not
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "60",
}


class PostgresServer:
    """A server.

    Args:
        port: Where it listens.
        command: Starts it.
        user: Who runs it; None for the user of the tests.
        log: Takes what it prints.
    """

    def __init__(self, port: int, command: list[str], user: str | None, log: IO[str]) -> None:
        self.port = port
        self._command = command
        self._user = user
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server with the data that it has, and wait until it answers."""
        self._process = subprocess.Popen(
            self._command,
            **_as_user(self._user),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            preexec_fn=_end_with_the_tests,  # noqa: PLW1509 - one system call, which takes no lock
        )
        self._wait_until_it_answers(self._process)

    def stop(self) -> None:
        """End the server at once, with all connections. It recovers its data from its log when it starts again."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    self._log.seek(0)
                    raise RuntimeError(f"the PostgreSQL server does not answer: {error}\n{self._log.read()}") from None
                time.sleep(0.05)

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """Open a connection that commits every statement."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=USER, password=PASSWORD, dbname=database, autocommit=True
        )

    def url(self, database: str) -> str:
        """Return the JDBC URL of a database, without user and password."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{database}"

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """Create an empty database and yield its name; drop it afterwards, with the connections that are left."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        try:
            yield name
        finally:
            with self.connect() as connection:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextlib.contextmanager
def running_server() -> Iterator[PostgresServer]:
    """Run a server in a temporary folder; yield it, and stop it at the end."""
    programs = _programs()
    # The server refuses to run as root. Its folder must then be one that another user may enter.
    user = _other_user() if os.getuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="ekorn-postgres-") as folder:
        password_file = Path(folder, "password")
        password_file.write_text(PASSWORD)
        data = Path(folder, "data")
        if user is not None:
            for path in (Path(folder), password_file):
                shutil.chown(path, user, pwd.getpwnam(user).pw_gid)
        _run(
            [programs / "initdb", "-D", data, "-U", USER, "-A", "scram-sha-256", "--pwfile", password_file],
            ["--no-sync", "-E", "UTF8", "--locale=C"],
            user=user,
        )
        (port,) = free_ports(1)
        settings = [f"-c{name}={value}" for name, value in (_SETTINGS | {"port": str(port)}).items()]
        with Path(folder, "log").open("a+") as log:
            server = PostgresServer(port, [str(programs / "postgres"), "-D", str(data), *settings], user, log)
            try:
                server.start()
                yield server
            finally:
                server.stop()


def _end_with_the_tests() -> None:
    """Let the kernel end the server when the test run is killed, which cannot stop it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def _programs() -> Path:
    """Return the folder of the server's binaries."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    if found:
        return found[-1].parent
    if on_path:
        return Path(on_path).resolve().parent
    raise RuntimeError(
        "this machine has no PostgreSQL server, which the tests of JDBC need; `make postgres` installs Debian's "
        "package postgresql, or put initdb and postgres on the PATH"
    )


def _other_user() -> str:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise RuntimeError("PostgreSQL does not run as root, and this machine has neither a user postgres nor nobody")


def _run(*command: list[str | Path], user: str | None) -> None:
    parts = [str(part) for parts in command for part in parts]
    done = subprocess.run(parts, **_as_user(user), cwd="/", capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(parts)} failed:\n{done.stdout}{done.stderr}")


def _as_user(user: str | None) -> dict[str, Any]:
    if user is None:
        return {}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Run the session's server."""
    with running_server() as server:
        yield server


@pytest.fixture
def postgres_database(postgres_server: PostgresServer) -> Iterator[str]:
    """Return the name of an empty database of this test's own."""
    with postgres_server.database() as name:
        yield name


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, postgres_database: str) -> str:
    """Return the JDBC URL of the test's database, without user and password."""
    return postgres_server.url(postgres_database)
