"""Bodies that are written to files, files that are sent, and the headers around them."""

import contextlib
import http.client
import os
import socket
import tempfile
import threading

import pytest

from ekorn.web.gate import Gate
from ekorn.web.http_messages import FileAnswer, HttpError, Response
from ekorn.web.http_server import ServerLimits, WebServer, _Conversation, tcp_socket, unix_socket
from ekorn.web.routes import Routes
from tests.live_jobs import until


class Site:
    """A server whose handlers a test writes, and a client of it."""

    def __init__(self, limits=None):
        self.routes = Routes()
        self.server = WebServer(tcp_socket("127.0.0.1", 0), self.routes, Gate(), limits=limits)
        self.server.start()

    def ask(self, method, path, body=None, headers=None):
        link = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        with contextlib.closing(link):
            link.request(method, path, body, headers or {})
            answer = link.getresponse()
            return answer.status, answer.read(), answer.headers

    def raw(self, data):
        """Send bytes; return all that the server answers until it closes the connection."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=30) as link:
            link.sendall(data)
            return b"".join(iter(lambda: link.recv(65536), b""))


@pytest.fixture
def site():
    opened = Site()
    yield opened
    opened.server.close()


@pytest.fixture
def bodies(tmp_path, monkeypatch):
    """The folder where bodies are written."""
    folder = tmp_path / "bodies"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_large_body_is_handed_over_in_a_file_that_is_gone_afterwards(site, bodies):
    handed = []

    def keep(request):
        handed.append((request.body_file.parent, request.body_file.read_bytes(), request.body))
        return {}

    site.routes.add("POST", "/files", keep, most_body_bytes=1 << 20, to_file=True)
    for body in (bytes(range(256)) * 700, b"", b"x" * (1 << 16), b"y" * (1 << 20)):
        assert site.ask("POST", "/files", body)[0] == 200
        assert handed.pop() == (bodies, body, b"")
    assert list(bodies.iterdir()) == []


def test_a_handler_that_refuses_a_file_leaves_none_behind(site, bodies):
    def refuse(request):
        raise HttpError(409, "not this one")

    site.routes.add("POST", "/files", refuse, to_file=True)
    assert site.ask("POST", "/files", b"abc")[:2] == (409, b'{"errors": ["not this one"]}')
    until(lambda: not list(bodies.iterdir()))


def test_a_handler_may_have_moved_the_file_away(site, bodies, tmp_path):
    site.routes.add("POST", "/files", lambda request: request.body_file.rename(tmp_path / "kept") and {}, to_file=True)
    assert site.ask("POST", "/files", b"abc")[0] == 200
    assert (tmp_path / "kept").read_bytes() == b"abc"


def test_a_body_that_ends_early_leaves_no_file(site, bodies):
    site.routes.add("POST", "/files", lambda request: {}, to_file=True)
    with socket.create_connection(("127.0.0.1", site.server.port), timeout=30) as link:
        link.sendall(b"POST /files HTTP/1.1\r\nContent-Length: 200000\r\n\r\n" + b"x" * 100_000)
        link.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: link.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 400") and b"the body ended after 34464 of 65536 bytes" in answer
    assert list(bodies.iterdir()) == []


@pytest.mark.parametrize(("size", "status"), [(99, 200), (100, 200), (101, 413)])
def test_a_body_has_at_most_the_bytes_of_its_route(site, size, status):
    site.routes.add("POST", "/short", lambda request: {"bytes": len(request.body)}, most_body_bytes=100)
    found, content, _ = site.ask("POST", "/short", b"x" * size)
    assert found == status
    assert content == (
        b'{"bytes": %d}' % size if status == 200 else b'{"errors": ["the body is longer than 100 bytes"]}'
    )


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (b"Content-Length: 2", b"200"),
        (b"Content-Length:  2 ", b"200"),
        (b"Content-Length: 000000000000000002", b"200"),
        (b"Content-Length: 0000000000000000002", b"413"),
        (b"Content-Length: 9" + b"9" * 5_000, b"413"),
        (b"Content-Length: 2\r\nContent-Length: 2", b"400"),
        (b"Content-Length: +2", b"400"),
        (b"Content-Length: \xb2", b"400"),
        (b"Content-Length:", b"400"),
        (b"Transfer-Encoding: chunked", b"411"),
    ],
)
def test_the_length_of_a_body_is_one_number(site, lines, status):
    site.routes.add("POST", "/short", lambda request: {}, most_body_bytes=100)
    answer = site.raw(b"POST /short HTTP/1.1\r\nConnection: close\r\n" + lines + b"\r\n\r\n{}")
    assert answer.split()[1] == status


def test_a_request_without_a_length_has_no_body(site):
    site.routes.add("POST", "/short", lambda request: {"bytes": len(request.body)})
    assert site.raw(b"POST /short HTTP/1.1\r\nConnection: close\r\n\r\n").endswith(b'{"bytes": 0}')


def test_a_file_is_sent_from_a_byte_on(site, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(bytes(range(256)) * 1_000)
    for first in (0, 1, 200_000, 255_999):
        site.routes.add("GET", "/log", lambda request, first=first: Response(FileAnswer(path, first)))
        status, content, headers = site.ask("GET", "/log")
        assert (status, content) == (200, path.read_bytes()[first:])
        assert headers["Content-Length"] == str(256_000 - first)


@pytest.mark.parametrize("first", [256, 300])
def test_nothing_is_sent_of_a_file_from_behind_its_end(site, tmp_path, first):
    (tmp_path / "log").write_bytes(bytes(256))
    site.routes.add("GET", "/log", lambda request: Response(FileAnswer(tmp_path / "log", first)))
    assert site.ask("GET", "/log")[:2] == (200, b"")


def test_a_request_for_the_head_learns_the_size_alone(site, tmp_path):
    (tmp_path / "log").write_bytes(bytes(300))
    site.routes.add("GET", "/log", lambda request: Response(FileAnswer(tmp_path / "log", 100)))
    site.routes.add("GET", "/json", lambda request: {"a": 1})
    for path, size in (("/log", "200"), ("/json", "8")):
        request = f"HEAD {path} HTTP/1.1\r\nConnection: close\r\n\r\n".encode()
        head, _, content = site.raw(request).partition(b"\r\n\r\n")
        assert f"Content-Length: {size}".encode() in head
        assert content == b""


def test_a_file_that_is_gone_is_a_404(site, tmp_path):
    site.routes.add("GET", "/log", lambda request: Response(FileAnswer(tmp_path / "gone")))
    assert site.ask("GET", "/log")[:2] == (404, b'{"errors": ["the file is gone"]}')


def test_a_file_that_is_cut_while_it_is_sent_ends_the_connection(site, tmp_path, monkeypatch):
    path = tmp_path / "log"
    path.write_bytes(bytes(1_000))
    fstat = os.fstat

    def before_the_cut(number):
        found = fstat(number)
        if found.st_size == 1_000:
            os.truncate(path, 400)
        return found

    monkeypatch.setattr("ekorn.web.http_server.os.fstat", before_the_cut)
    site.routes.add("GET", "/log", lambda request: Response(FileAnswer(path)))
    with pytest.raises(http.client.IncompleteRead) as ended:
        site.ask("GET", "/log")
    assert len(ended.value.partial) == 400


def test_answers_are_not_kept_and_not_framed_by_other_pages(site):
    site.routes.add("GET", "/a", lambda request: Response({}, 201, headers={"X-Own": "1", "Cache-Control": "private"}))
    status, _, headers = site.ask("GET", "/a")
    assert status == 201
    assert dict(headers) == {
        "Content-Type": "application/json; charset=UTF-8",
        "Content-Length": "2",
        "Cache-Control": "private",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "X-Own": "1",
    }
    site.routes.add("GET", "/b", lambda request: {})
    assert site.ask("GET", "/b")[2]["Cache-Control"] == "no-store"


def test_a_request_without_the_token_is_told_which_kind_is_asked_for():
    server = WebServer(tcp_socket("127.0.0.1", 0), Routes(), Gate(b"t" * 20))
    server.start()
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    link.request("GET", "/")
    answer = link.getresponse()
    assert (answer.status, answer.headers["WWW-Authenticate"], answer.headers["Connection"]) == (401, "Bearer", "close")
    link.close()
    server.close()


@pytest.mark.parametrize(
    ("version", "header", "answers"),
    [
        (b"HTTP/1.1", b"", 2),
        (b"HTTP/1.1", b"Connection: keep-alive\r\n", 2),
        (b"HTTP/1.1", b"Connection: Close\r\n", 1),
        (b"HTTP/1.0", b"", 1),
        (b"HTTP/1.0", b"Connection: keep-alive\r\n", 1),
    ],
)
def test_a_connection_goes_on_only_if_both_sides_know_that(site, version, header, answers):
    site.routes.add("GET", "/a", lambda request: {})
    first = b"GET /a " + version + b"\r\n" + header + b"\r\n"
    last = b"GET /a HTTP/1.1\r\nConnection: close\r\n\r\n"
    answer = site.raw(first + last)
    assert answer.count(b"HTTP/1.1 200") == answers
    assert answer.count(b"Connection: close") == 1


def test_a_refused_request_ends_its_connection_and_one_that_its_handler_refuses_does_not(site):
    def refuse(request):
        raise HttpError(409, "not now")

    site.routes.add("GET", "/a", refuse)
    last = b"GET /a HTTP/1.1\r\nConnection: close\r\n\r\n"
    assert site.raw(b"GET /nowhere HTTP/1.1\r\n\r\n" + last).count(b"HTTP/1.1 ") == 1
    assert site.raw(b"GET /a HTTP/1.1\r\n\r\n" + last).count(b"HTTP/1.1 409") == 2


@pytest.mark.parametrize(("letters", "status"), [((1 << 16) - 16, b"404"), ((1 << 16) - 15, b"414")])
def test_the_first_line_of_a_request_has_a_longest_length(site, letters, status):
    line = b"GET /" + b"a" * letters + b" HTTP/1.1\r\n"  # 16 bytes without the letters
    assert len(line) == letters + 16
    assert site.raw(line + b"Connection: close\r\n\r\n").split()[1] == status


@pytest.mark.parametrize(("more", "status"), [(0, b"200"), (1, b"431")])
def test_the_headers_of_a_request_are_bounded_together(site, more, status):
    """Python lets each of a hundred headers have 64 KiB: of all newcomers together more than a gigabyte."""
    site.routes.add("GET", "/a", lambda request: {})
    last = b"Connection: close\r\n\r\n"
    line = b"x: " + b"a" * 995 + b"\r\n"
    lines, rest = divmod((1 << 16) - len(last), len(line))
    fill = b"y: " + b"a" * (rest - 5 + more) + b"\r\n"
    assert site.raw(b"GET /a HTTP/1.1\r\n" + line * lines + fill + last).split()[1] == status


def test_what_cannot_be_parsed_is_answered_as_a_page_would_be_in_json(site):
    head, _, content = site.raw(b"GET /a HTTP/9.9\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert content == b'{"errors": ["Invalid HTTP version (9.9)"]}'


@pytest.mark.parametrize("code", [400, 431, 499, 500, 505, 302])
def test_what_cannot_be_parsed_is_always_the_clients_mistake(site, code):
    """Python answers a request that it cannot parse with codes of servers, too."""

    class Odd:
        close_connection = False
        request_version = command = ""
        refused: list[HttpError] = []

        def _send_refusal(self, refused):
            self.refused.append(refused)

    _Conversation.send_error(Odd(), code)  # type: ignore[arg-type]
    _Conversation.send_error(Odd(), code, "a reason")  # type: ignore[arg-type]
    expected = code if code in (400, 431, 499) else 400
    assert [(each.status, each.reason) for each in Odd.refused] == [
        (expected, "the request is malformed"),
        (expected, "a reason"),
    ]


def test_a_line_that_is_too_long_is_answered_whatever_was_asked_before(site):
    site.routes.add("GET", "/a", lambda request: {})
    answer = site.raw(b"HEAD /a HTTP/1.1\r\n\r\nGET /" + b"a" * (1 << 16) + b" HTTP/1.1\r\n\r\n")
    assert answer.endswith(b'{"errors": ["the first line of the request is too long"]}')


def test_a_body_has_a_time_of_its_own():
    site = Site(ServerLimits(request_s=3_600, body_s=0.1))
    site.routes.add("POST", "/a", lambda request: {})
    with socket.create_connection(("127.0.0.1", site.server.port), timeout=60) as link:
        link.sendall(b"POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc")
        assert link.recv(65536).startswith(b"HTTP/1.1 408")
    site.server.close()


def test_a_peer_that_does_not_read_its_answer_is_sent_away():
    site = Site(ServerLimits(request_s=3_600, body_s=0.1))
    asked = threading.Event()

    def much(request):
        asked.set()
        return Response(bytes(64 << 20))

    site.routes.add("GET", "/a", much)
    with socket.create_connection(("127.0.0.1", site.server.port), timeout=60) as link:
        link.sendall(b"GET /a HTTP/1.1\r\n\r\n")
        assert asked.wait(60)
        assert site.server.wait_until_idle(60.0)
    site.server.close()


def test_a_server_that_stops_accepting_finishes_what_it_has_begun(site):
    begun, go_on, found = threading.Event(), threading.Event(), []

    def wait(request):
        begun.set()
        assert go_on.wait(60)
        return {"done": True}

    site.routes.add("GET", "/a", wait)
    asking = threading.Thread(target=lambda: found.append(site.ask("GET", "/a", headers={"Connection": "close"})[1]))
    asking.start()
    assert begun.wait(60)
    site.server.stop_accepting()
    with pytest.raises(ConnectionError):
        site.ask("GET", "/a")
    assert not site.server.wait_until_idle(-1.0)
    assert not site.server.wait_until_idle(0.01)
    go_on.set()
    assert site.server.wait_until_idle(60.0)
    asking.join(60)
    assert found == [b'{"done": true}']


def test_a_known_peer_is_not_closed_for_a_crowd_of_strangers():
    site = Site(ServerLimits(most_newcomers=2))
    site.routes.add("GET", "/a", lambda request: {})
    link = http.client.HTTPConnection("127.0.0.1", site.server.port, timeout=30)
    link.request("GET", "/a")
    assert link.getresponse().read() == b"{}"
    strangers = [socket.create_connection(("127.0.0.1", site.server.port), timeout=30) for _ in range(4)]
    assert [stranger.recv(1) for stranger in strangers[:2]] == [b"", b""], "the oldest strangers are sent away"
    link.request("GET", "/a")
    assert link.getresponse().read() == b"{}"
    link.close()
    for stranger in strangers:
        stranger.close()
    site.server.close()


def test_one_more_connection_than_clients_may_have_is_told_so_and_another_may_take_its_place():
    site = Site(ServerLimits(most_known=2))
    site.routes.add("GET", "/a", lambda request: {})
    links = [http.client.HTTPConnection("127.0.0.1", site.server.port, timeout=30) for _ in range(2)]
    for link in links * 2:  # a connection counts once
        link.request("GET", "/a")
        assert link.getresponse().read() == b"{}"
    status, content, _ = site.ask("GET", "/a")
    assert (status, content.startswith(b'{"errors": ["clients have 2 connections')) == (429, True)
    links[0].close()
    until(lambda: site.ask("GET", "/a")[0] == 200)
    links[1].close()
    site.server.close()


def test_a_unix_socket_in_use_is_not_taken_over(tmp_path):
    path = str(tmp_path / "s")
    first = unix_socket(path)
    with pytest.raises(OSError, match="in use"):
        unix_socket(path)
    link = socket.socket(socket.AF_UNIX)
    link.connect(path)
    first.close()
    link.close()
