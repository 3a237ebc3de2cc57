"""By which names a server may be addressed, which addresses it announces, and its token."""

import os
import socket
import ssl
import stat

import pytest

from ekorn.config.settings.web_settings import WebSettings
from ekorn.errors import ConfigurationError
from ekorn.web import http_client, peers
from ekorn.web.gate import Gate
from ekorn.web.http_client import WebClient, target_of
from ekorn.web.http_messages import HttpError
from ekorn.web.http_server import tcp_socket, unix_socket
from ekorn.web.routes import Routes
from ekorn.web.serving import serve
from ekorn.web.token_file import read_token, token_in
from tests.self_signed import self_signed

THIS_HOST = {"localhost", "127.0.0.1", "::1"}


@pytest.fixture
def opened(tmp_path):
    servers = []

    def run(host=None, **more):
        serving = serve(WebSettings(port=0, **more), Routes(), str(tmp_path / "token"), host=host, started=False)
        servers.append(serving.server)
        return serving

    yield run
    for server in servers:
        server.close()


def test_a_server_on_loopback_has_the_names_of_loopback_and_those_it_is_given(opened):
    serving = opened(host="Proxy.Example", bind_address="127.0.0.1", allowed_hosts=(" Other.example ",))
    assert serving.server.gate.hosts == THIS_HOST | {"proxy.example", "other.example"}
    assert serving.server.gate.read_only is False


def test_a_server_on_every_address_has_the_names_of_its_host(opened):
    serving = opened(bind_address="0.0.0.0", read_only=True)
    names = {socket.gethostname().lower(), socket.getfqdn().lower()}
    assert serving.server.gate.hosts == THIS_HOST | names | {"0.0.0.0"}
    assert serving.server.gate.read_only is True
    assert serving.address == f"http://{socket.gethostname()}:{serving.server.port}"


def test_a_server_on_one_address_has_that_name_alone(opened, monkeypatch):
    monkeypatch.setattr("ekorn.web.serving.is_loopback", lambda address: False)  # as for an address of the network
    assert opened(bind_address="127.0.0.1").server.gate.hosts == {"127.0.0.1"}


def test_a_server_announces_the_address_that_it_listens_on(opened, tmp_path):
    plain = opened(bind_address="127.0.0.1")
    assert plain.address == plain.local_address == f"http://127.0.0.1:{plain.server.port}"
    assert plain.token_file == str(tmp_path / "token")
    encrypted = opened(
        bind_address="127.0.0.1", certificate_file=str(self_signed(tmp_path / "c.pem")), host="a.example"
    )
    assert encrypted.address == encrypted.local_address == f"https://a.example:{encrypted.server.port}"


def test_an_ipv6_address_is_written_in_brackets(opened, monkeypatch):
    monkeypatch.setattr("ekorn.web.serving.tcp_socket", lambda address, port: tcp_socket("127.0.0.1", port))
    serving = opened(bind_address="::1")  # also where the machine has no IPv6
    assert serving.address == serving.local_address == f"http://[::1]:{serving.server.port}"


def test_a_server_without_authentication_has_no_token(opened, tmp_path):
    serving = opened(needs_token=False)
    assert serving.token_file is None and serving.server.gate.token is None
    assert not (tmp_path / "token").exists()


def test_settings_may_name_the_file_of_the_token(opened, tmp_path):
    serving = opened(token_file=str(tmp_path / "other"))
    assert serving.token_file == str(tmp_path / "other")
    assert serving.server.gate.token == read_token(str(tmp_path / "other"))


def test_a_certificate_that_cannot_be_used_is_named(opened, tmp_path):
    (tmp_path / "c.pem").write_text("no certificate")
    for name, reason in (("c.pem", r"\[SSL\]"), ("missing.pem", "No such file or directory$")):
        path = tmp_path / name
        said = rf"ekorn.web.certificate-file: '{path}' cannot be used: {reason}"
        with pytest.raises(ConfigurationError, match=said):
            opened(certificate_file=str(path))


def test_an_old_version_of_tls_is_not_spoken(opened, tmp_path):
    serving = opened(certificate_file=str(self_signed(tmp_path / "c.pem")))
    assert serving.server._tls is not None
    assert serving.server._tls.minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_port_is_free_again_when_its_server_is_closed():
    with tcp_socket("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            tcp_socket("127.0.0.1", port)
    tcp_socket("127.0.0.1", port).close()


# The gate


@pytest.mark.parametrize("header", ["Bearer a token", "bearer a token", "BEARER  a token "])
def test_a_token_is_known_however_its_header_is_written(header):
    assert Gate(b"a token").knows({"Authorization": header}) is True


@pytest.mark.parametrize(
    "header", ["a token", "Basic a token", "Bearer", "Bearer ", "Bearer a toke", "", "a token Bearer "]
)
def test_anything_else_is_no_token(header):
    assert Gate(b"a token").knows({"Authorization": header}) is False
    assert Gate(b"a token").knows({}) is False


def test_a_server_without_a_token_knows_everybody():
    assert Gate().knows({}) is True


HOSTS = frozenset({"a.example", "127.0.0.1"})


@pytest.mark.parametrize("host", ["a.example", "A.Example:8081", "127.0.0.1:1"])
def test_a_server_is_addressed_by_its_names_with_any_port(host):
    Gate(hosts=HOSTS).check_sender({"Host": host})
    Gate(hosts=HOSTS).check_sender({"Host": host, "Origin": f"https://{host.upper()}", "Sec-Fetch-Site": "none"})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Host": "b.example"},
        {"Host": "[x"},
        {"Host": "a.example:8081", "Origin": "http://a.example"},
        {"Host": "a.example", "Origin": "http://[x"},
        {"Host": "a.example", "Origin": ""},
        {"Host": "a.example", "Sec-Fetch-Site": "same-site"},
        {"Host": "a.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Host": "a.example", "Origin": "http://b.example", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_a_request_that_another_page_sends_is_refused(headers):
    with pytest.raises(HttpError) as refused:
        Gate(hosts=HOSTS).check_sender(headers)
    assert refused.value.status == 403


def test_a_link_on_another_page_may_lead_here():
    Gate(hosts=HOSTS).check_sender({"Host": "a.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})


def test_a_long_name_is_cut_in_the_reason():
    with pytest.raises(HttpError) as refused:
        Gate(hosts=HOSTS).check_sender({"Host": "x" * 1_000})
    assert refused.value.reason.count("x") == 80


def test_a_unix_socket_has_no_name_to_check():
    Gate(hosts=None).check_sender({"Host": "evil.example", "Origin": "http://evil.example"})


# The file of the token


@pytest.mark.parametrize(
    ("content", "holds"),
    [
        (b"x" * 16, True),
        (b"  " + b"x" * 16 + b"\n", True),
        (b"x" * 15 + b" \n", False),
        (b"x" * 20 + b"\n" + b"y" * 20, False),
        ("\u00e9".encode() * 20, False),
        (b"", False),
    ],
)
def test_a_token_is_one_line_of_sixteen_characters_at_least(tmp_path, content, holds):
    path = tmp_path / "token"
    path.write_bytes(content)
    path.chmod(0o600)
    if holds:
        assert read_token(str(path)) == content.strip()
    else:
        with pytest.raises(ConfigurationError, match="one line of at least 16 ASCII characters"):
            read_token(str(path))


def test_of_two_processes_that_make_the_token_one_makes_it_for_both(tmp_path, monkeypatch):
    path = tmp_path / "token"
    link = os.link

    def after_another_process(source, target):
        path.write_text("the token of the other process\n")
        path.chmod(0o600)
        return link(source, target)

    monkeypatch.setattr("ekorn.web.token_file.os.link", after_another_process)
    assert token_in(str(path)) == b"the token of the other process"
    assert os.listdir(tmp_path) == ["token"]


def test_a_token_has_32_random_bytes(tmp_path):
    assert len(token_in(str(tmp_path / "token"))) == 43  # of base 64
    assert token_in(str(tmp_path / "other")) != token_in(str(tmp_path / "token"))


# Peers and targets


def test_the_user_of_a_peer_is_known_where_the_kernel_tells(monkeypatch):
    ours, theirs = socket.socketpair()
    assert peers.peer_uid(ours) == os.getuid()
    monkeypatch.delattr(socket, "SO_PEERCRED")
    assert peers.peer_uid(ours) is None
    ours.close()
    theirs.close()


def test_a_socket_is_for_its_owner_only(tmp_path):
    with unix_socket(str(tmp_path / "s")):
        assert stat.S_IMODE(os.stat(tmp_path / "s").st_mode) == 0o600


@pytest.mark.parametrize("given", ["", "http://", "ftp://a.example", "http://a:port", "a:99999", "http://[", "://a"])
def test_what_is_no_address_of_a_service_is_refused(given):
    with pytest.raises(ConfigurationError, match="is not the address of a service"):
        target_of(given, has_certificate=False)


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ("https://a.example", ("a.example", 8081, True)),
        ("https://a.example:443", ("a.example", 443, True)),
        ("http://localhost", ("localhost", 8081, False)),
        ("http://a.example:80/path", ("a.example", 80, False)),
    ],
)
def test_a_scheme_decides_about_encryption(given, target):
    for has_certificate in (False, True):
        assert tuple(target_of(given, has_certificate=has_certificate)) == target


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("localhost", True),
        ("192.0.2.77", False),
        ("2001:db8::7", False),
        ("0.0.0.0", False),
        ("::", False),
        ("224.0.0.1", False),
        ("ff02::1", False),
        ("a.example", False),
    ],
)
def test_only_addresses_of_this_machine_may_be_sent_a_token_in_clear(host, is_here):
    assert http_client._is_on_this_machine(host) is is_here


def test_an_address_of_this_machine_that_is_not_loopback_stays_on_it(monkeypatch):
    monkeypatch.setattr(http_client, "is_loopback", lambda address: False)  # 127.0.0.1 stands for such an address
    assert http_client._is_on_this_machine("127.0.0.1") is True
    assert http_client._is_on_this_machine("192.0.2.77") is False
    assert WebClient("http://127.0.0.1:8081", "t").address == "http://127.0.0.1:8081"
