"""`socket_text_stream`: text from a server, cut at a delimiter."""

import socket
import threading
from contextlib import contextmanager

import pytest

from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.errors import JobExecutionError
from ekorn.testing import collect_locally, on_local_engine


@contextmanager
def serving(*connections, left=None):
    """Serve one list of chunks per connection, then end it; with an event `left`, wait for the client to end it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            for chunks in connections:
                connection, _ = server.accept()
                with connection:
                    for chunk in chunks:
                        connection.sendall(chunk)
                    if left is not None:
                        connection.settimeout(30)
                        assert connection.recv(1) == b""
                        left.set()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            thread.join(30)


def lines(port, *more):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    return env.socket_text_stream("127.0.0.1", port, *more)


@pytest.mark.parametrize(
    ("chunks", "more", "expected"),
    [
        ([b"a b\nc", b"d\r\n", b"\nrest"], (), ["a b", "cd", "", "rest"]),
        ([b"a;;b;", b";c"], (";;",), ["a", "b", "c"]),
        (["caf\u00e9\n".encode()[:4], "caf\u00e9\n".encode()[4:]], (), ["caf\u00e9"]),
        ([], (), []),
    ],
)
def test_text_is_cut_at_the_delimiter(chunks, more, expected):
    with serving(chunks) as port:
        assert collect_locally(lines(port, *more)) == expected


def test_a_connection_that_ends_is_opened_again():
    with serving([b"a\n"], [b"b\n"]) as port:
        assert collect_locally(lines(port, "\n", 1)) == ["a", "b"]


def test_a_job_that_is_cancelled_leaves_a_server_that_is_silent():
    left = threading.Event()
    with serving([b"a\n"], left=left) as port, on_local_engine():
        with lines(port).execute_and_collect() as records:
            assert next(records) == "a"
        assert left.wait(60)


def test_a_server_that_is_not_there_is_named():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(JobExecutionError, match=f"cannot read from 127.0.0.1:{port}"):
            collect_locally(lines(port))


@pytest.mark.parametrize("more", [(0,), (70000,), (80, ""), (80, "\n", -2)])
def test_wrong_arguments_are_refused_at_the_call(more):
    with pytest.raises(ValueError, match=r"socket_text_stream\(\) takes"):
        lines(*more)
