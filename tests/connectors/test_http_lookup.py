"""`HttpLookup`: requests of an HTTP service for each record, retries, the cache, and keys that are never shown."""

import asyncio
import json
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ekorn.clock import ManualClock
from ekorn.common import Configuration, Time, Types
from ekorn.datastream import AsyncDataStream, StreamExecutionEnvironment
from ekorn.datastream.connectors.http import HttpLookup, HttpRequest
from ekorn.errors import JobExecutionError
from ekorn.testing import collect_locally

KEY = "canary-http-key"


class Prices(BaseHTTPRequestHandler):
    """Answers with the length of the path; fails as often as the path says."""

    protocol_version = "HTTP/1.1"
    asked: Counter[str] = Counter()
    keys: set[str | None] = set()
    connections: set[tuple[str, int]] = set()

    def do_GET(self):
        path = self.path.partition("?")[0]
        Prices.asked[path] += 1
        Prices.keys.add(self.headers.get("X-Key"))
        Prices.connections.add(self.client_address)
        _, kind, *rest = path.split("/")
        if kind == "busy" and Prices.asked[path] <= int(rest[0]):
            return self.answer(503, b"busy", {"Retry-After": "0"})
        if kind == "missing":
            return self.answer(404, b"no such item")
        if kind == "wrong":
            return self.answer(400, b"wrong question")
        if kind == "gone":
            self.close_connection = True
            return None
        return self.answer(200, json.dumps({"price": len(path)}).encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, json.dumps({"price": body.decode()}).encode())

    def answer(self, status, body, headers=None):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        """Say nothing."""


@contextmanager
def running():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Prices)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def url():
    Prices.asked, Prices.keys, Prices.connections = Counter(), set(), set()
    with running() as address:
        yield address


def looked_up(url, paths, **options):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(1)
    lookup = HttpLookup(
        lambda path: f"{url}{path}?token={KEY}",
        lambda path, answer: [(path, answer.status, answer.json()["price"] if answer.status == 200 else None)],
        headers={"X-Key": KEY},
        **options,
    )
    stream = env.from_collection(paths, Types.STRING())
    answered = AsyncDataStream.ordered_wait(stream, lookup, Time.seconds(20), 10, Types.PICKLED_BYTE_ARRAY())
    return collect_locally(answered)


def test_every_record_gets_its_answer(url):
    paths = [f"/item/{number}" for number in range(50)]
    assert looked_up(url, paths) == [(path, 200, len(path)) for path in paths]
    assert Prices.keys == {KEY}
    assert len(Prices.connections) <= 16, "connections stay open"


def test_a_busy_server_is_asked_again(url):
    assert looked_up(url, ["/busy/2"]) == [("/busy/2", 200, 7)]
    assert Prices.asked == {"/busy/2": 3}


def test_a_lookup_that_finds_nothing_is_an_answer(url):
    assert looked_up(url, ["/missing"]) == [("/missing", 404, None)]


@pytest.mark.parametrize(
    ("path", "options", "asked", "reason"),
    [
        ("/wrong", {}, 1, "status 400: wrong question"),
        ("/busy/9", {"max_retries": 1}, 2, "status 503: busy"),
        ("/gone", {"max_retries": 1}, 2, "no answer: RemoteDisconnected"),
        ("/missing", {"also_answers": ()}, 1, "status 404: no such item"),
    ],
)
def test_a_failure_names_the_request_without_its_keys(url, path, options, asked, reason):
    with pytest.raises(JobExecutionError, match=reason) as caught:
        looked_up(url, [path], **options)
    assert Prices.asked[path] == asked
    assert f"GET {url}{path}: " in str(caught.value)
    assert KEY not in str(caught.value)


def test_an_answer_of_the_cache_is_not_asked_for_again(url):
    paths = ["/item/1", "/item/2"] * 20
    assert looked_up(url, paths, cache_entries=2) == [(path, 200, 7) for path in paths]
    assert Prices.asked == {"/item/1": 1, "/item/2": 1}, "also while the first request is under way"


def test_failures_are_not_kept(url):
    assert looked_up(url, ["/busy/1", "/busy/1"], cache_entries=9) == [("/busy/1", 200, 7)] * 2
    assert Prices.asked == {"/busy/1": 2}


def test_answers_are_evicted_by_age_and_by_number(url):
    clock = ManualClock()
    lookup = HttpLookup(
        lambda path: url + path, lambda path, answer: [answer.status], cache_entries=2, cache_ttl=1000, clock=clock
    )
    lookup.open(None)

    async def ask(*paths):
        for path in paths:
            await lookup.async_invoke(path)

    asyncio.run(ask("/a", "/b", "/a", "/c", "/a", "/b"))
    assert Prices.asked == {"/a": 1, "/b": 2, "/c": 1}, "/b was the least recently used"
    clock.advance(1000)
    asyncio.run(ask("/a"))
    assert Prices.asked["/a"] == 2
    lookup.close()


def test_requests_may_have_a_body(url):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(1)
    lookup = HttpLookup(
        lambda item: HttpRequest(f"{url}/price", "POST", item.encode()),
        lambda item, answer: [answer.json()["price"]],
        cache_entries=5,
    )
    stream = env.from_collection(["tea", "nuts", "tea"], Types.STRING())
    answered = AsyncDataStream.ordered_wait(stream, lookup, Time.seconds(20), 10, Types.STRING())
    assert collect_locally(answered) == ["tea", "nuts", "tea"]


@pytest.mark.parametrize("options", [{"thread_count": 0}, {"max_retries": -1}, {"cache_ttl": 5}])
def test_wrong_options_are_refused_at_the_call(options):
    with pytest.raises(ValueError, match=r"HttpLookup\(\)"):
        HttpLookup(lambda path: path, lambda path, answer: [], **options)


def test_no_repr_shows_a_key():
    assert KEY not in repr(HttpRequest(f"http://u:{KEY}@h/p?k={KEY}", headers={"X-Key": KEY}))
