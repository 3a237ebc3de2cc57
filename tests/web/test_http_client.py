"""Where a client goes when a server names another one as the leader."""

from contextlib import ExitStack

import pytest

from ekorn.config.settings.web_settings import WebSettings
from ekorn.web.gate import Gate
from ekorn.web.http_client import WebClient
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
