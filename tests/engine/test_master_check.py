"""A Spark master that cannot be used is named before Spark starts."""

import socket
import threading
from contextlib import ExitStack, contextmanager, suppress

import pytest

from ekorn.engine.spark.driver_side import master_check
from ekorn.engine.spark.driver_side.master_check import check_master
from ekorn.engine.spark.driver_side.session import java_errors_explained, spark_context
from ekorn.errors import DeploymentError

TLS_GREETING = b"\x16"


@pytest.fixture
def closed_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]  # bound and not listening: connections are refused


@pytest.mark.parametrize("form", ["spark://127.0.0.1:{0}", "k8s://https://127.0.0.1:{0}", "k8s://127.0.0.1:{0}"])
def test_a_master_that_refuses_connections_is_named_before_java_starts(closed_port, form, monkeypatch):
    monkeypatch.setattr(master_check, "_PATIENCE_S", 0.1)
    master = form.format(closed_port)
    with pytest.raises(DeploymentError, match=r"cannot be reached .*Connection refused") as raised:
        spark_context({"spark.master": master})
    assert repr(master) in str(raised.value)


class Clockwork:
    """Stands for `time`, in which nothing passes: a pause does something else."""

    def __init__(self, on_pause):
        self._on_pause = on_pause

    def monotonic(self):
        return 0.0

    def sleep(self, seconds):
        self._on_pause()


def test_a_master_that_was_started_just_now_is_waited_for(closed_port, monkeypatch):
    starting = socket.socket()
    starting.bind(("127.0.0.1", 0))
    with ExitStack() as serving:
        monkeypatch.setattr(
            master_check, "time", Clockwork(lambda: serving.enter_context(answering(b"\0" * 21, starting)))
        )
        check_master(f"spark://127.0.0.1:{closed_port},127.0.0.1:{starting.getsockname()[1]}")


def test_a_host_that_nobody_knows_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(master_check, "time", Clockwork(lambda: pytest.fail("waits for a name")))
    with pytest.raises(DeploymentError, match="cannot be reached"):
        check_master("spark://no-such-host.invalid:7077")


@pytest.mark.parametrize("form", ["spark://127.0.0.1:{0}", "k8s://https://127.0.0.1:{0}"])
def test_a_port_that_accepts_and_never_answers_is_named_before_java_starts(form, monkeypatch):
    monkeypatch.setattr(master_check, "_PATIENCE_S", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(DeploymentError, match="it accepts connections and does not answer"),
    ):
        spark_context({"spark.master": form.format(silent.getsockname()[1])})


def test_the_check_of_a_master_takes_less_than_ten_seconds():
    assert master_check._PATIENCE_S < 10


@contextmanager
def answering(answer, bound=None, *, to_tls=None):
    """Serve at a new port or that of a bound socket: answer the first bytes of a connection, and close it."""

    def serve():
        with suppress(OSError):  # the end of the block ends it
            while True:
                connection, _ = server.accept()
                with connection:
                    asked = connection.recv(1024)
                    connection.sendall(answer if to_tls is None or asked[:1] != TLS_GREETING else to_tls)

    with bound or socket.create_server(("127.0.0.1", 0)) as server:
        server.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_the_web_page_of_a_master_is_not_the_master():
    with (
        answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port,
        pytest.raises(DeploymentError, match=r"a web server answers there; .* usually 7077"),
    ):
        check_master(f"spark://127.0.0.1:{port}")


@pytest.mark.parametrize("answer", [b"\x15\x03\x03", b"\0" * 21])
def test_one_master_of_several_suffices(closed_port, answer):
    with answering(answer) as port:
        check_master(f"spark://127.0.0.1:{closed_port},127.0.0.1:{port}")


def test_a_master_with_encrypted_ports_closes_what_is_not_encrypted():
    with answering(b"", to_tls=b"\x15\x03\x03\0\x02\x02\x28") as port:  # the alert "handshake failure"
        check_master(f"spark://127.0.0.1:{port}")


@pytest.mark.parametrize("form", ["spark://127.0.0.1:{0}", "k8s://https://127.0.0.1:{0}"])
def test_a_port_that_closes_each_connection_is_named_before_java_starts(form):
    with (
        answering(b"") as port,
        pytest.raises(DeploymentError, match="it closes each connection without an answer"),
    ):
        spark_context({"spark.master": form.format(port)})


def test_the_port_of_another_server_is_named_before_java_starts():
    with (
        answering(b"SSH-2.0-OpenSSH_9.2\r\n") as port,
        pytest.raises(DeploymentError, match=r"another server answers there, with b'SSH-2.0-OpenSSH_9.2\\r\\n'"),
    ):
        spark_context({"spark.master": f"spark://127.0.0.1:{port}"})


GIVEN_UP = (
    "An error occurred while calling o90.addFile.\n: java.lang.NullPointerException: Cannot invoke "
    '"org.apache.spark.SparkEnv.driverTmpDir()" because the return value of "org.apache.spark.SparkEnv$.get()" is null'
)


def test_a_cluster_of_another_version_of_spark_is_named():
    with (
        pytest.raises(DeploymentError, match=r"'spark://h:7077' answers, but did not accept .* same version of Spark"),
        java_errors_explained("spark://h:7077"),
    ):
        raise RuntimeError(GIVEN_UP)


def test_an_error_of_java_that_says_what_happened_stays():
    with pytest.raises(RuntimeError, match="no such file"), java_errors_explained("spark://h:7077"):
        raise RuntimeError("no such file")


def test_a_server_of_kubernetes_may_answer_anything():
    with answering(b"HTTP/1.0 400 Bad Request\r\n\r\n") as port:
        check_master(f"k8s://127.0.0.1:{port}")


def test_yarn_needs_its_configuration():
    with pytest.raises(DeploymentError, match="neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"):
        check_master("yarn", {})
    check_master("yarn", {"HADOOP_CONF_DIR": "/etc/hadoop"})


@pytest.mark.parametrize("master", ["spark://nowhere", "spark://:7077", "spark://h:99999", "k8s://", "loca", "h:7077"])
def test_what_is_no_address_of_a_master_is_refused_with_the_forms(master):
    with pytest.raises(DeploymentError, match=r"is not the address of a Spark master: write local\[N\]"):
        check_master(master, {})


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,4]", "local-cluster[2,1,512]"])
def test_masters_on_this_machine_need_no_address(master):
    check_master(master, {})
