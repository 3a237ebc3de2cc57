"""Whom a web server answers: tokens, names, pages of other servers, read-only servers, bounds and bad requests."""

import contextlib
import errno
import http.client
import io
import json
import os
import socket
import ssl
import stat
import tempfile
import threading
from pathlib import Path

import pytest

from ekorn.common import Configuration
from ekorn.config.settings.web_settings import WebSettings, web_settings
from ekorn.engine.slots.link_certificate import made_by_package
from ekorn.errors import ConfigurationError
from ekorn.web.gate import Gate
from ekorn.web.http_client import WebClient
from ekorn.web.http_messages import Response
from ekorn.web.http_server import ServerLimits, WebServer, tcp_socket, unix_socket
from ekorn.web.routes import Routes
from ekorn.web.serving import serve
from ekorn.web.token_file import read_token, token_in

TOKEN = "a-token-that-is-long-enough"


def late(request):
    raise TimeoutError("of something that the handler waits for")


def full(*_, **__):
    raise OSError(errno.ENOSPC, "of a disk", "/some/where")


def routes():
    found = Routes()
    found.add("POST", "/full", full)
    found.add("POST", "/uploads", lambda request: {}, most_body_bytes=1 << 20, to_file=True)
    found.add("GET", "/things", lambda request: {"things": [1, 2]})
    found.add("GET", "/things/:name", lambda request: dict(request.parameters))
    found.add("POST", "/things", lambda request: Response(request.json_object(), 202), most_body_bytes=100)
    found.add("GET", "/", lambda request: Response(b"<p>page", content_type="text/html"), is_public=True)
    found.add("GET", "/defect", lambda request: {"never": 1 // 0})
    found.add("GET", "/late", late)
    return found


@pytest.fixture
def start():
    servers = []

    def run(*, token=TOKEN, read_only=False, limits=None):
        gate = Gate(None if token is None else token.encode(), frozenset({"127.0.0.1", "localhost"}), read_only)
        servers.append(WebServer(tcp_socket("127.0.0.1", 0), routes(), gate, limits=limits))
        servers[-1].start()
        return servers[-1].port

    yield run
    for server in servers:
        server.close()


def ask(port, method, path, body=None, token=TOKEN, **headers):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    link.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = link.getresponse()
    content = answer.read()
    link.close()
    return answer.status, content


def raw(port, data):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
        link.sendall(data)
        link.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: link.recv(65536), b""))


def test_a_request_with_the_token_is_answered(start):
    port = start()
    assert ask(port, "GET", "/things") == (200, b'{"things": [1, 2]}')
    assert ask(port, "POST", "/things", json.dumps({"a": 1})) == (202, b'{"a": 1}')
    assert ask(port, "GET", "/things/a%20b") == (200, b'{"name": "a b"}')
    assert ask(port, "HEAD", "/things") == (200, b"")


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", "\u00e9" * 20])
@pytest.mark.parametrize("path", ["/things", "/nowhere", "/things/1"])
def test_without_the_token_nothing_is_told(start, token, path):
    headers = (
        {} if token is None else {"Authorization": f"Bearer {token}".encode("latin-1", "replace").decode("latin-1")}
    )
    status, content = ask(start(), "GET", path, token=None, **headers)
    assert status == 401 and b"token" in content


def test_a_token_is_compared_in_constant_time(monkeypatch):
    compared = []

    def compare(given, known):
        compared.append((given, known))
        return False

    monkeypatch.setattr("ekorn.web.gate.hmac.compare_digest", compare)
    gate = Gate(b"the token of this server")
    assert not gate.knows({"Authorization": "Bearer the token of this server"}), "nothing else decides"
    assert not gate.knows({"Authorization": "Bearer of another one"})
    assert compared == [
        (b"the token of this server", b"the token of this server"),
        (b"of another one", b"the token of this server"),
    ]


def test_a_page_needs_no_token(start):
    assert ask(start(), "GET", "/", token=None) == (200, b"<p>page")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "["},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"},
    ],
)
def test_requests_of_other_pages_are_refused_even_with_the_token(start, headers):
    assert ask(start(), "GET", "/things", **headers)[0] == 403


def test_a_page_of_the_server_itself_is_answered(start):
    port = start()
    own = {"Origin": f"http://localhost:{port}", "Host": f"localhost:{port}", "Sec_Fetch_Site": "same-origin"}
    assert ask(port, "POST", "/things", "{}", **own)[0] == 202
    assert ask(port, "GET", "/", token=None, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200


def test_a_read_only_server_changes_nothing(start):
    port = start(read_only=True)
    assert ask(port, "GET", "/things")[0] == 200
    status, content = ask(port, "POST", "/things", "{}")
    assert status == 403 and b"read-only" in content


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("DELETE", "/things", None, 405),
        ("SING", "/things", None, 405),
        ("POST", "/things", "no json", 400),
        ("POST", "/things", "[1]", 400),
        ("POST", "/things", "[" * 99, 400),
        ("POST", "/things", "x" * 101, 413),
        ("GET", "/things/%ff", None, 400),
        ("GET", "/things/1?" + "&".join(f"a{n}=1" for n in range(500)), None, 400),
        ("GET", "/" + "a" * 70_000, None, 414),
    ],
)
def test_bad_requests_are_refused_with_a_reason(start, method, path, body, status):
    found, content = ask(start(), method, path, body)
    assert found == status and json.loads(content)["errors"][0]


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"GET /things HTTP/9.9\r\n\r\n",
        b"GET /things HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n",
        b"POST /things HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: -5\r\n\r\n",
        b"POST /things HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 5\r\n\r\n{}",
        b"POST /things HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nTransfer-Encoding: x\r\n\r\n",
        b"\x00\xff\xfe\r\n\r\n",
    ],
)
def test_malformed_requests_are_refused_as_the_clients_mistake(start, data):
    answer = raw(start(), data.replace(b"%s", TOKEN.encode()))
    assert answer.startswith(b"HTTP/1.1 4"), answer[:200]


@pytest.mark.parametrize("path", ["/defect", "/late"])
def test_a_defect_is_an_answer_without_details(start, path):
    status, content = ask(start(), "GET", path)
    assert status == 500 and b"Error" not in content


def test_a_full_disk_is_named_as_the_reason_and_its_path_is_not(start):
    status, content = ask(start(), "POST", "/full")
    assert status == 507 and json.loads(content)["errors"] == [
        "the server cannot write to its disk: no space left on device; its log names the file; repeat the request once "
        "there is room"
    ]


@pytest.mark.parametrize("full_folder", [True, False])
def test_a_body_that_the_disk_does_not_take_is_refused_with_the_reason_and_leaves_no_file(
    start, full_folder, monkeypatch, tmp_path
):
    """The disk is full before the file is made, or in the middle of it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    port = start()
    if full_folder:
        monkeypatch.setattr(tempfile, "mkstemp", full)
    else:
        monkeypatch.setattr("ekorn.web.http_server.open", FullFile, raising=False)
    client = WebClient(f"127.0.0.1:{port}", TOKEN)
    answer = client.ask("POST", "/uploads", file=io.BytesIO(bytes(300_000)))
    assert answer.status == 507 and "no space left" in answer.body.decode()
    assert list(tmp_path.iterdir()) == []


class FullFile(io.FileIO):
    def write(self, data):
        return full(data)


@pytest.mark.parametrize(("token", "status"), [("wrong", 401), (TOKEN, 413)])
def test_a_client_learns_why_a_long_body_is_refused(start, token, status):
    client = WebClient(f"127.0.0.1:{start()}", token)
    assert client.ask("POST", "/things", file=io.BytesIO(bytes(8 << 20))).status == status


def test_others_are_answered_while_peers_are_silent(start):
    port = start()
    with socket.create_connection(("127.0.0.1", port)), socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"GET /thi")
        assert ask(port, "GET", "/things")[0] == 200


def test_a_silent_peer_is_sent_away(start):
    port = start(limits=ServerLimits(idle_s=0.2, request_s=0.2))
    with socket.create_connection(("127.0.0.1", port)) as silent, socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"GET /thi")
        slow.settimeout(30)
        silent.settimeout(30)
        assert slow.recv(100).startswith(b"HTTP/1.1 408")
        assert silent.recv(100) == b""


def test_a_request_that_never_ends_is_refused_though_its_bytes_keep_coming(start):
    port = start(limits=ServerLimits(request_s=1.0))
    with socket.create_connection(("127.0.0.1", port), timeout=0.1) as slow:
        slow.sendall(b"GET /")
        for _ in range(300):  # thirty times as long as the request may take
            slow.sendall(b"a")
            try:
                assert slow.recv(100).startswith(b"HTTP/1.1 408")
                return
            except TimeoutError:
                continue
    raise AssertionError("the server still waits for the rest of the request")


def test_many_clients_are_answered_at_once(start):
    port, found = start(), []
    threads = [threading.Thread(target=lambda: found.append(ask(port, "GET", "/things")[0])) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [200] * 200


def test_a_connection_carries_several_requests(start):
    link = http.client.HTTPConnection("127.0.0.1", start(), timeout=30)
    for _ in range(3):
        link.request("GET", "/things", headers={"Authorization": f"Bearer {TOKEN}"})
        assert link.getresponse().read() == b'{"things": [1, 2]}'
    link.close()


def test_another_user_is_not_answered_on_a_unix_socket(tmp_path):
    path = str(tmp_path / "s")
    server = WebServer(unix_socket(path), routes(), Gate(), uid_of=lambda link: os.getuid() + 1)
    server.start()
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(30)
        link.connect(path)
        assert link.recv(100) == b""
    server.close()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


@pytest.fixture
def certificate(tmp_path):
    path = tmp_path / "server.pem"
    made = made_by_package()
    assert made is not None
    path.write_bytes(made.pem)
    return path


@pytest.fixture(params=["plain", "TLS"])
def encrypted(request, certificate):
    return None if request.param == "plain" else str(certificate)


def test_a_server_with_a_certificate_speaks_tls(tmp_path, certificate):
    settings = WebSettings(port=0, certificate_file=str(certificate))
    serving = serve(settings, routes(), str(tmp_path / "token"))
    trusted = ssl.create_default_context(cafile=str(certificate))
    trusted.check_hostname = False
    link = http.client.HTTPSConnection("127.0.0.1", serving.server.port, context=trusted, timeout=30)
    link.request("GET", "/things", headers={"Authorization": f"Bearer {read_token(str(tmp_path / 'token')).decode()}"})
    assert link.getresponse().status == 200
    link.close()
    assert serving.address.startswith("https://")
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        ask(serving.server.port, "GET", "/")
    serving.server.close()


def test_a_server_that_is_closed_ends_its_connections(tmp_path, encrypted):
    serving = serve(WebSettings(port=0, certificate_file=encrypted), routes(), str(tmp_path / "token"))
    link = http.client.HTTPConnection("127.0.0.1", serving.server.port, timeout=30)
    if encrypted is not None:
        trusted = ssl.create_default_context(cafile=encrypted)
        trusted.check_hostname = False
        link = http.client.HTTPSConnection("127.0.0.1", serving.server.port, context=trusted, timeout=30)
    link.request("GET", "/")
    assert link.getresponse().read() == b"<p>page"
    connection = link.sock
    serving.server.close()
    with contextlib.suppress(ConnectionError):
        assert connection.recv(100) == b""
    link.close()


def test_the_token_file_is_made_once_and_for_its_owner_only(tmp_path):
    path = str(tmp_path / "token")
    first = token_in(path)
    assert token_in(path) == first and len(first) > 30
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    os.chmod(path, 0o644)
    with pytest.raises(ConfigurationError, match="open to other users"):
        token_in(path)
    os.chmod(path, 0o600)
    Path(path).write_text("short")
    with pytest.raises(ConfigurationError, match="does not contain a token"):
        token_in(path)
    assert os.listdir(tmp_path) == ["token"]


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"ekorn.web": "9999999"}, "a port from 1 to 65535"),
        ({"ekorn.web": "auto", "ekorn.web.bind-address": "0.0.0.0"}, "ekorn.web.certificate-file"),
        (
            {"ekorn.web": "auto", "ekorn.web.bind-address": "::", "ekorn.web.authentication": "none"},
            "cannot be 'none'",
        ),
        ({"ekorn.web.bind-address": "0.0.0.0"}, "ekorn.web.certificate-file"),
    ],
)
def test_a_server_that_strangers_could_use_is_refused(keys, reason):
    with pytest.raises(ConfigurationError, match=reason):
        web_settings(Configuration.from_dict(keys))


def test_an_address_in_use_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = WebSettings(port=taken.getsockname()[1])
        with pytest.raises(ConfigurationError, match="cannot listen on 127"):
            serve(settings, routes(), str(tmp_path / "token"))


def test_a_client_that_waits_for_the_word_to_send_its_body_gets_it_at_once(start):
    head = f"POST /things HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 8\r\n"
    with socket.create_connection(("127.0.0.1", start()), timeout=30) as link:
        link.sendall(f"{head}Expect: 100-continue\r\nConnection: close\r\n\r\n".encode())
        assert link.recv(65536).startswith(b"HTTP/1.1 100 Continue")
        link.sendall(b'{"a": 1}')
        assert b"202 Accepted" in b"".join(iter(lambda: link.recv(65536), b""))
