"""Where a client goes: over TLS or in clear, and when a server names another one as the leader."""

import socket
import threading
from contextlib import ExitStack, suppress

import pytest

from ekorn.config.settings.web_settings import WebSettings
from ekorn.errors import ConfigurationError
from ekorn.web.gate import Gate
from ekorn.web.http_client import ServerGone, WebClient, target_of
from ekorn.web.http_messages import Response
from ekorn.web.http_server import WebServer, tcp_socket
from ekorn.web.routes import Routes
from ekorn.web.serving import serve
from ekorn.web.token_file import read_token
from tests.self_signed import self_signed


@pytest.fixture
def closing():
    with ExitStack() as stack:
        yield stack


def leader_of(closing, asked):
    """Open a server that leads; return its address."""

    def handler(request):
        asked.append(request.path)
        return {"leads": True}

    routes = Routes()
    routes.add("GET", "/things", handler, is_public=True)
    server = WebServer(tcp_socket("127.0.0.1", 0), routes, Gate(b"t" * 20, frozenset({"127.0.0.1"})))
    server.start()
    closing.callback(server.close)
    return f"http://127.0.0.1:{server.port}"


def standby_of(closing, folder, leader, certificate):
    """Open a server that names a leader."""
    routes = Routes()
    routes.add("GET", "/things", lambda request: Response({}, 307, headers={"Location": f"{leader}/things"}))
    settings = WebSettings(port=0, certificate_file=None if certificate is None else str(certificate))
    serving = serve(settings, routes, str(folder / "token"))
    closing.callback(serving.server.close)
    return serving.address, read_token(str(folder / "token")).decode()


def test_a_client_follows_a_standby_to_the_leader(closing, tmp_path):
    asked = []
    address, token = standby_of(closing, tmp_path, leader_of(closing, asked), None)
    assert WebClient(address, token).get("/things") == {"leads": True}
    assert asked == ["/things"]


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
def test_a_client_never_follows_from_tls_to_plain_http(closing, tmp_path, scheme):
    certificate, asked = self_signed(tmp_path / "server.pem"), []
    address, token = standby_of(closing, tmp_path, leader_of(closing, asked), certificate)
    client = WebClient(address.replace("https", scheme), token, str(certificate), patience_s=0.0)
    assert client.ask("GET", "/things").status == 307
    assert asked == []


ELSEWHERE = "192.0.2.77"  # of a network that is reserved for documentation


@pytest.mark.parametrize(
    ("address", "has_certificate", "is_encrypted"),
    [
        ("127.0.0.1:8081", False, False),
        ("localhost:8081", False, False),
        ("[::1]:8081", False, False),
        ("http://127.0.0.1:8081", True, False),
        ("127.0.0.1:8081", True, True),
        ("a.example:8081", False, True),
        ("a.example", False, True),
        ("localhost.a.example:8081", False, True),
        (f"{ELSEWHERE}:8081", False, True),
        (f"{ELSEWHERE}:8081", True, True),
        ("0.0.0.0:8081", False, True),
        ("2130706433:8081", False, True),
    ],
)
def test_an_address_without_a_scheme_is_plain_http_on_loopback_alone(address, has_certificate, is_encrypted):
    assert target_of(address, has_certificate=has_certificate).is_encrypted is is_encrypted


@pytest.mark.parametrize("address", [f"http://{ELSEWHERE}:8081", "HTTP://a.example:8081", "http://localhost.a.example"])
def test_plain_http_to_another_machine_is_refused_unless_it_is_allowed_in_words(address):
    with pytest.raises(ConfigurationError, match=r"plain HTTP to another machine.*--allow-plain-http"):
        WebClient(address, "t")
    with pytest.raises(ConfigurationError, match="plain HTTP to another machine"):
        WebClient(f"localhost:8081,{address}", "t")
    assert WebClient(address, "t", allow_plain_http=True).address == address


def test_a_client_does_not_follow_a_standby_on_this_machine_to_plain_http_elsewhere(closing, tmp_path):
    address, token = standby_of(closing, tmp_path, f"http://{ELSEWHERE}:8081", None)
    with pytest.raises(ConfigurationError, match=f"{ELSEWHERE}:8081 is plain HTTP to another machine"):
        WebClient(address, token, patience_s=0.0).get("/things")


def listener_of(closing, received, answer=b""):
    """Open a port that keeps what it is sent, as someone on the path would; return the address."""
    listening = socket.create_server(("127.0.0.1", 0))
    closing.callback(listening.close)

    def listen():
        link, _ = listening.accept()
        with link:
            link.settimeout(5.0)
            received.append(link.recv(65536))
            link.sendall(answer)
            with suppress(ConnectionError):
                received.append(link.recv(65536) if answer else b"")

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    return f"https://127.0.0.1:{listening.getsockname()[1]}", thread


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak TLS.*--allow-plain-http"), (b"", "does not speak TLS")],
)
def test_a_server_without_tls_is_sent_no_token(closing, answer, reason):
    received = []
    address, thread = listener_of(closing, received, answer)
    with pytest.raises(ServerGone, match=reason):
        WebClient(address, "the-token", patience_s=0.0).get("/things")
    thread.join(5.0)
    assert received
    assert b"the-token" not in b"".join(received)
    assert b"GET" not in b"".join(received)


def test_a_server_whose_certificate_nobody_vouches_for_is_sent_nothing(closing, tmp_path):
    asked = []
    routes = Routes()
    routes.add("GET", "/things", lambda request: asked.append(request) or {}, is_public=True)
    settings = WebSettings(port=0, certificate_file=str(self_signed(tmp_path / "server.pem")))
    serving = serve(settings, routes, str(tmp_path / "token"))
    closing.callback(serving.server.close)
    other = str(self_signed(tmp_path / "other.pem"))
    for certificate in (None, other):
        client = WebClient(f"{serving.address},{serving.address}", "t", certificate)  # does not wait for a minute
        with pytest.raises(ServerGone, match=r"no token was sent: its certificate .*--certificate-file"):
            client.get("/things")
    assert asked == []


def test_a_certificate_for_another_name_is_refused(closing, tmp_path):
    certificate = str(self_signed(tmp_path / "server.pem"))
    serving = serve(WebSettings(port=0, certificate_file=certificate), Routes(), str(tmp_path / "token"))
    closing.callback(serving.server.close)
    with pytest.raises(ServerGone, match="if it is for another name, use that name"):
        WebClient(serving.address.replace("127.0.0.1", "localhost"), "t", certificate).get("/things")


def test_a_certificate_file_that_cannot_be_read_is_named():
    with pytest.raises(ConfigurationError, match=r"the certificate file '/nowhere.pem' cannot be used"):
        WebClient("a.example:8081", "t", "/nowhere.pem")


def test_a_service_without_tls_announces_an_address_that_stays_on_its_machine(closing, tmp_path):
    settings = WebSettings(port=0, bind_address="0.0.0.0")
    serving = serve(settings, Routes(), str(tmp_path / "token"), host="proxy.example.com")
    closing.callback(serving.server.close)
    assert serving.address == f"http://proxy.example.com:{serving.server.port}"
    assert serving.local_address == f"http://127.0.0.1:{serving.server.port}"
    WebClient(serving.local_address, "t")


def test_a_leader_whose_certificate_is_not_known_is_named_and_not_waited_for(closing, tmp_path):
    certificate = str(self_signed(tmp_path / "leader.pem"))
    leader = serve(WebSettings(port=0, certificate_file=certificate), Routes(), str(tmp_path / "token"))
    closing.callback(leader.server.close)
    known = self_signed(tmp_path / "server.pem")
    address, token = standby_of(closing, tmp_path, leader.address, known)
    with pytest.raises(ServerGone, match=f"{leader.address} is not trusted"):
        WebClient(address, token, str(known), patience_s=0.0).get("/things")
