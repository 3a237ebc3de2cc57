"""`HttpLookup`: asks an HTTP service for each record, with retries and a cache; for `AsyncDataStream`.

    lookup = HttpLookup(lambda order: f"http://prices/{order.item}", lambda order, answer: [(order, answer.json())])
    priced = AsyncDataStream.unordered_wait(orders, lookup, Time.seconds(10), 100, Types.PICKLED_BYTE_ARRAY())

Requests run on threads with connections that stay open, through `http.client` of the standard library.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ekorn.clock import Clock, SystemClock
from ekorn.errors import HttpLookupError
from ekorn.functions.async_functions import AsyncFunction
from ekorn.types.time import Duration, millis_of

__all__ = ["HttpLookup", "HttpRequest", "HttpResponse"]

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_LONGEST_WAIT_S = 30.0


@dataclass(frozen=True)
class HttpRequest:
    """A request. Equal requests share an answer of the cache."""

    url: str
    method: str = "GET"
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)

    def __repr__(self) -> str:
        return f"HttpRequest({self.method} {_shown(self.url)!r})"  # the query and the headers may hold keys


class HttpResponse(NamedTuple):
    """The answer to a request."""

    status: int
    body: bytes
    headers: dict[str, str]  # with names in lower case

    def json(self) -> Any:
        """Return the body, read as JSON."""
        return json.loads(self.body)


class _Cached(NamedTuple):
    response: HttpResponse
    until: float | None  # a monotonic time


class HttpLookup(AsyncFunction[Any, Any]):
    """Asks an HTTP service for each record."""

    def __init__(
        self,
        request: Callable[[Any], HttpRequest | str],
        result: Callable[[Any, HttpResponse], list[Any]],
        *,
        headers: Mapping[str, str] | None = None,
        request_timeout: Duration | timedelta | int = 10_000,
        thread_count: int = 16,
        max_retries: int = 3,
        also_answers: Collection[int] = (404,),
        cache_entries: int = 0,
        cache_ttl: Duration | timedelta | int | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Create the function.

        Args:
            request: Returns the request, or the URL, for a record.
            result: Returns the records for a record and its answer. It runs on the loop of the operator: it must not
                wait.
            headers: Headers of every request, such as one with a key. They are in no log and in no error.
            request_timeout: How long a server may be silent; a number is in milliseconds. The time for a record
                with all retries is limited by `AsyncDataStream`.
            thread_count: The number of requests that a subtask sends at the same time.
            max_retries: How often a request is sent again if the server is away, busy (429) or failing (5xx). The wait
                doubles from 0.1 s, or is the one that the server asks for. Requests must be ones that may be repeated.
            also_answers: The statuses besides 2xx that are passed to `result`. Others fail the record.
            cache_entries: The number of answers that are kept, the least recently used one is evicted; 0 for no cache.
            cache_ttl: How long an answer is kept; None for no limit.
            clock: The clock of the cache; tests pass their own.
        """
        for name, value, least in (
            ("thread_count", thread_count, 1),
            ("max_retries", max_retries, 0),
            ("cache_entries", cache_entries, 0),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"HttpLookup() takes a {name} of {least} or more, got {value!r}")
        if cache_ttl is not None and not cache_entries:
            raise ValueError("HttpLookup() got a cache_ttl without cache_entries; give the cache a size")
        self._request = request
        self._result = result
        self._headers = dict(headers or {})
        self._timeout_s = millis_of(request_timeout) / 1000
        self._thread_count = thread_count
        self._max_retries = max_retries
        self._also_answers = frozenset(also_answers)
        self._cache_entries = cache_entries
        self._cache_ttl_s = None if cache_ttl is None else millis_of(cache_ttl) / 1000
        self._clock = clock or SystemClock()

    def open(self, runtime_context: Any) -> None:
        """Start the threads."""
        self._threads = ThreadPoolExecutor(self._thread_count, "ekorn-http")
        self._local = threading.local()
        self._cache: OrderedDict[HttpRequest, _Cached] = OrderedDict()
        self._in_flight: dict[HttpRequest, asyncio.Task[HttpResponse]] = {}

    def close(self) -> None:
        """Stop the threads; requests that wait are not sent."""
        threads = getattr(self, "_threads", None)  # `open` may not have been called
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    async def async_invoke(self, value: Any) -> list[Any]:
        """Return the records for a record and its answer."""
        given = self._request(value)
        request = HttpRequest(given) if isinstance(given, str) else given
        cached = self._cached(request)
        if cached is None:
            cached = await self._shared(request)
        return self._result(value, cached)

    async def _shared(self, request: HttpRequest) -> HttpResponse:
        """Return the answer; records that need the same answer at the same time wait for one request."""
        if not self._cache_entries:
            return await self._answer(request)
        task = self._in_flight.get(request)
        if task is None:
            task = self._in_flight[request] = asyncio.create_task(self._answer(request))
            task.add_done_callback(lambda done: self._keep(request, done))
        return await asyncio.shield(task)  # a record that times out does not end the request of the others

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        loop, retries = asyncio.get_running_loop(), 0
        while True:
            wait_s = min(0.1 * 2**retries, _LONGEST_WAIT_S)
            try:
                response = await loop.run_in_executor(self._threads, self._send, request)
            except (OSError, http.client.HTTPException) as error:
                if retries >= self._max_retries:
                    reason = f"{type(error).__name__}: {error}"
                    raise HttpLookupError(request.method, _shown(request.url), None, reason) from None
            else:
                if 200 <= response.status < 300 or response.status in self._also_answers:
                    return response
                if response.status not in _PASSING or retries >= self._max_retries:
                    said = response.body[:200].decode(errors="replace")
                    raise HttpLookupError(request.method, _shown(request.url), response.status, said)
                wait_s = _asked_wait(response, wait_s)
            retries += 1
            await asyncio.sleep(wait_s)

    # --------------------------------------------------------------------------------------------- the cache

    def _cached(self, request: HttpRequest) -> HttpResponse | None:
        found = self._cache.get(request)
        if found is None:
            return None
        if found.until is not None and self._clock.monotonic() >= found.until:
            del self._cache[request]
            return None
        self._cache.move_to_end(request)
        return found.response

    def _keep(self, request: HttpRequest, done: asyncio.Task[HttpResponse]) -> None:
        del self._in_flight[request]
        if done.cancelled() or done.exception() is not None:
            return
        until = None if self._cache_ttl_s is None else self._clock.monotonic() + self._cache_ttl_s
        self._cache[request] = _Cached(done.result(), until)
        if len(self._cache) > self._cache_entries:
            self._cache.popitem(last=False)

    # ------------------------------------------------------------------------------------ on a thread of the pool

    def _send(self, request: HttpRequest) -> HttpResponse:
        parts = urlsplit(request.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"HttpLookup takes http and https URLs, got {_shown(request.url)!r}")
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        place = (parts.scheme, parts.hostname, parts.port)
        connections = self._local.__dict__.setdefault("connections", {})
        is_reused = place in connections
        try:
            return self._exchange(connections, place, target, request)
        except (ConnectionError, http.client.RemoteDisconnected, http.client.CannotSendRequest):
            if not is_reused:
                raise
            # A server may end an idle connection just as it is used again.
            return self._exchange(connections, place, target, request)

    def _exchange(
        self,
        connections: dict[tuple[str, str, int | None], http.client.HTTPConnection],
        place: tuple[str, str, int | None],
        target: str,
        request: HttpRequest,
    ) -> HttpResponse:
        scheme, host, port = place
        connection = connections.pop(place, None)
        if connection is None:
            make = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
            connection = make(host, port, timeout=self._timeout_s)
        try:
            connection.request(request.method, target, request.body, {**self._headers, **request.headers})
            answer = connection.getresponse()
            body = answer.read()
        except BaseException:
            connection.close()
            raise
        connections[place] = connection
        return HttpResponse(answer.status, body, {name.lower(): value for name, value in answer.getheaders()})

    def __repr__(self) -> str:
        return f"HttpLookup({self._request!r})"


def _asked_wait(response: HttpResponse, otherwise_s: float) -> float:
    asked = response.headers.get("retry-after", "")
    return min(float(asked), _LONGEST_WAIT_S) if asked.isdigit() else otherwise_s


def _shown(url: str) -> str:
    """Return a URL without user, password and query, which may hold keys."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"
