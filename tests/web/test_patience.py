"""How often and how long a client asks servers that cannot be reached, or of which none leads."""

import io
import json
import socket
import threading

import pytest

from ekorn.web import http_client
from ekorn.web.http_client import Answered, RefusedRequest, ServerGone, WebClient, _Unreachable, _Untrusted

A, B, C = "http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"


class Clock:
    """Stands for the module `time`: sleeping moves it on at once."""

    def __init__(self):
        self.now_s = 1_000.0
        self.pauses = []

    def monotonic(self):
        return self.now_s

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(http_client, "time", made)
    return made


def answer(status=200, **more):
    return Answered(status, "application/json", b"{}", **more)


def to(leader):
    return answer(307, location=f"{leader}/jobs")


NOBODY_LEADS = answer(503, retry_after_s=2.0)


class Scripted(WebClient):
    """A client whose servers answer from a list; the last answer of a server stays."""

    def __init__(self, servers, answers, **more):
        super().__init__(servers, **more)
        self.answers = {server: list(given) for server, given in answers.items()}
        self.asked = []

    def _ask(self, address, method, path, body, file):
        self.asked.append(address)
        given = self.answers[address]
        found = given.pop(0) if len(given) > 1 else given[0]
        if isinstance(found, Exception):
            raise found
        return found


def gone(address=A):
    return _Unreachable(f"{address} does not answer")


def test_the_first_server_that_answers_is_enough(clock):
    client = Scripted(f" {A} , {B},", {A: [answer(204)], B: [answer(200)]})
    assert client.ask("GET", "/jobs").status == 204
    assert (client.asked, clock.pauses) == ([A], [])


def test_the_next_server_is_asked_when_one_cannot_be_reached(clock):
    client = Scripted(f"{A},{B}", {A: [gone()], B: [answer(404)]})
    assert client.ask("GET", "/jobs").status == 404
    assert (client.asked, clock.pauses) == ([A, B], [])


def test_a_single_server_that_cannot_be_reached_is_asked_once(clock):
    client = Scripted(A, {A: [gone()]})
    with pytest.raises(ServerGone, match="does not answer"):
        client.ask("GET", "/jobs")
    assert (client.asked, clock.pauses) == ([A], [])


def test_several_servers_that_cannot_be_reached_are_asked_until_patience_ends(clock):
    client = Scripted(f"{A},{B}", {A: [gone()], B: [gone(B)]}, patience_s=1.0)
    with pytest.raises(ServerGone, match=r"127.0.0.1:2 does not answer"):
        client.ask("GET", "/jobs")
    assert (client.asked, clock.pauses) == ([A, B, A, B, A, B], [0.5, 0.5])


def test_servers_that_come_up_meanwhile_are_found(clock):
    client = Scripted(f"{A},{B}", {A: [gone()], B: [gone(B), answer()]})
    assert client.ask("POST", "/jobs").status == 200
    assert clock.pauses == [0.5]


def test_a_server_that_cannot_prove_who_it_is_ends_the_patience(clock):
    client = Scripted(f"{A},{B}", {A: [_Untrusted("A is not trusted")], B: [gone(B)]})
    with pytest.raises(ServerGone, match="A is not trusted"):
        client.ask("GET", "/jobs")
    assert (client.asked, clock.pauses) == ([A, B], [])


def test_a_server_that_ended_after_it_may_have_read_the_request_is_not_asked_again(clock):
    client = Scripted(f"{A},{B}", {A: [ServerGone("ended")], B: [answer()]})
    with pytest.raises(ServerGone, match="ended"):
        client.ask("POST", "/jobs")
    assert client.asked == [A]


def test_while_nobody_leads_the_request_is_sent_again_when_the_server_says(clock):
    client = Scripted(A, {A: [NOBODY_LEADS, NOBODY_LEADS, answer()]})
    assert client.ask("GET", "/jobs").status == 200
    assert clock.pauses == [2.0, 2.0]


def test_the_last_answer_is_returned_when_nobody_leads_for_too_long(clock):
    client = Scripted(A, {A: [NOBODY_LEADS]}, patience_s=4.0)
    assert client.ask("GET", "/jobs") == NOBODY_LEADS
    assert clock.pauses == [2.0, 2.0]


def test_a_server_without_a_leader_says_more_than_one_that_is_gone(clock):
    for answers in ({A: [NOBODY_LEADS], B: [gone(B)]}, {A: [gone()], B: [NOBODY_LEADS]}):
        client = Scripted(f"{A},{B}", answers, patience_s=0.0)
        assert client.ask("GET", "/jobs") == NOBODY_LEADS
        assert client.asked == [A, B]


def test_a_server_that_asks_to_be_asked_at_once_is_asked_after_a_pause(clock):
    client = Scripted(A, {A: [answer(503, retry_after_s=0.0), answer()]})
    assert client.ask("GET", "/jobs").status == 200
    assert clock.pauses == [0.5]


def test_leaders_are_followed_three_times_and_then_asked_again_from_the_start(clock):
    client = Scripted(A, {A: [to(B)], B: [to(C)], C: [to(A)]}, patience_s=0.0)
    assert client.ask("GET", "/jobs").status == 307
    assert client.asked == [A, B, C, A]
    client = Scripted(A, {A: [to(B)], B: [to(C)], C: [answer()]})
    assert client.ask("GET", "/jobs").status == 200
    assert client.asked == [A, B, C]


def test_a_leader_that_is_gone_is_waited_for(clock):
    client = Scripted(A, {A: [to(B), to(C)], B: [gone(B)], C: [answer()]})
    assert client.ask("POST", "/jobs").status == 200
    assert (client.asked, clock.pauses) == ([A, B, A, C], [0.5])


@pytest.mark.parametrize(("method", "asked"), [("GET", [A, B, A, C]), ("POST", [A, B])])
def test_a_leader_that_ended_is_sent_a_reading_request_again_and_no_other(clock, method, asked):
    client = Scripted(A, {A: [to(B), to(C)], B: [ServerGone("ended")], C: [answer()]})
    if method == "GET":
        assert client.ask(method, "/jobs").status == 200
    else:
        with pytest.raises(ServerGone, match="ended"):
            client.ask(method, "/jobs")
    assert client.asked == asked


def test_a_leader_that_is_not_trusted_is_named(clock):
    client = Scripted(A, {A: [to(B)], B: [_Untrusted("B is not trusted")]})
    with pytest.raises(ServerGone, match="B is not trusted"):
        client.ask("GET", "/jobs")
    assert clock.pauses == []


@pytest.mark.parametrize(
    "location", ["/jobs", "unix:/tmp/s", "ftp://127.0.0.1/jobs", "http:///jobs", "http://[/jobs", None]
)
def test_a_redirection_that_names_no_server_is_an_answer(clock, location):
    client = Scripted(A, {A: [answer(307, location=location)]})
    assert client.ask("GET", "/jobs").status == 307
    assert client.asked == [A]


def test_a_client_takes_any_file_and_any_bytes_and_sends_their_length():
    received = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def listen():
            for _ in range(4):
                link, _ = listening.accept()
                with link, link.makefile("rb") as lines:
                    headers = dict(
                        line.decode().strip().split(": ") for line in iter(lines.readline, b"\r\n") if b": " in line
                    )
                    body = lines.read(int(headers.get("Content-Length", 0)))
                    received.append((headers.get("Content-Type"), headers.get("Authorization"), body))
                    link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        client = WebClient(f"127.0.0.1:{listening.getsockname()[1]}", "the token")
        file = io.BytesIO(b"of a file")
        file.read(3)  # the whole of it is sent, wherever it stands
        assert client.ask("POST", "/", file=file) == Answered(200, "", b"")
        client.ask("POST", "/", b"as it is")
        client.ask("POST", "/", {"a": 1})
        client.ask("POST", "/")
        thread.join(60)
    assert received == [
        (None, "Bearer the token", b"of a file"),
        (None, "Bearer the token", b"as it is"),
        ("application/json", "Bearer the token", b'{"a": 1}'),
        (None, "Bearer the token", b""),
    ]


def answering(head, body=b""):
    """Return the address of a server that answers one request with these bytes."""
    listening = socket.create_server(("127.0.0.1", 0))

    def listen():
        with listening, listening.accept()[0] as link:
            link.recv(65536)
            link.sendall(head + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    threading.Thread(target=listen, daemon=True).start()
    return f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize(
    ("head", "retry_after_s", "location"),
    [
        (b"HTTP/1.1 503 No\r\nRetry-After: 3", 3.0, None),
        (b"HTTP/1.1 503 No\r\nRetry-After: tomorrow", None, None),
        (b"HTTP/1.1 503 No", None, None),
        (b"HTTP/1.1 429 No\r\nRetry-After: 3", None, None),
        (b"HTTP/1.1 307 There\r\nLocation: unix:/nowhere", None, "unix:/nowhere"),
        (b"HTTP/1.1 201 Made\r\nLocation: http://127.0.0.1:1", None, None),
    ],
)
def test_an_answer_says_when_to_ask_again_and_whom(head, retry_after_s, location):
    found = WebClient(answering(head), patience_s=0.0).ask("GET", "/")
    assert (found.retry_after_s, found.location) == (retry_after_s, location)


def test_a_server_that_ends_before_it_answers_is_gone():
    listening = socket.create_server(("127.0.0.1", 0))

    def listen():
        with listening, listening.accept()[0] as link:
            link.recv(65536)

    threading.Thread(target=listen, daemon=True).start()
    with pytest.raises(ServerGone, match="does not answer") as found:
        WebClient(f"127.0.0.1:{listening.getsockname()[1]}").ask("GET", "/")
    assert not isinstance(found.value, _Unreachable), "it may have read the request"


def test_a_server_that_speaks_no_http_is_gone():
    listening = socket.create_server(("127.0.0.1", 0))

    def listen():
        with listening, listening.accept()[0] as link:
            link.recv(65536)
            link.sendall(b"220 mail.example ESMTP\r\n")

    threading.Thread(target=listen, daemon=True).start()
    with pytest.raises(ServerGone, match="does not answer"):
        WebClient(f"127.0.0.1:{listening.getsockname()[1]}").ask("GET", "/")


def test_a_port_where_nobody_listens_is_unreachable():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(_Unreachable, match=f"127.0.0.1:{port} does not answer: .*refused"):
        WebClient(f"127.0.0.1:{port}").ask("GET", "/")


@pytest.mark.parametrize(("status", "fails"), [(200, False), (299, False), (300, True), (404, True), (500, True)])
def test_an_answer_is_json_or_a_refusal(status, fails):
    body = json.dumps({"errors": ["one", "two"]}).encode()
    found = Answered(status, "application/json", body)
    if not fails:
        assert found.json() == {"errors": ["one", "two"]}
        return
    with pytest.raises(RefusedRequest, match=r"^one; two$") as refused:
        found.json()
    assert refused.value.status == status


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'"a"', b'{"errors": []}'])
def test_a_refusal_without_a_reason_names_its_status(body):
    with pytest.raises(RefusedRequest, match=r"^status 404$"):
        Answered(404, "", body).json()


def test_an_empty_answer_is_an_empty_object_and_a_page_is_not_the_answer_of_a_service():
    assert Answered(202, "", b"").json() == {}
    with pytest.raises(ServerGone, match="the server answered with status 200 and no JSON"):
        Answered(200, "text/html", b"<p>").json()


def test_a_socket_that_a_crowd_waits_at_is_tried_again(tmp_path, monkeypatch, clock):
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(0)
        crowd = [socket.socket(socket.AF_UNIX) for _ in range(8)]
        for each in crowd:
            each.setblocking(False)
            try:
                each.connect(path)
            except BlockingIOError:
                break
        with pytest.raises(ServerGone, match="the server accepts no connections"):
            WebClient(f"unix:{path}", timeout_s=0.05).ask("GET", "/")
        assert clock.pauses and set(clock.pauses) == {0.01}
        for each in crowd:
            each.close()
