"""The port at which a driver answers queries of its jobs' state.

All jobs of a driver with the same settings share one port. A client has to prove that it knows the token. The token
gives access to queryable state and nothing else. The handshake, the digests of messages and TLS are those of every link
(`links/link.py`).
"""

from __future__ import annotations

import errno
import logging
import secrets
import threading
from collections.abc import Callable

from ekorn.config import options
from ekorn.config.settings.deployment_settings import LinkSettings, QueryableSettings
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.queries.query_answers import AnswersInOrder, refusal
from ekorn.driver.queries.query_routing import PendingValues, StateQueries
from ekorn.driver.queries.query_wire import MOST_QUERY_BYTES, Answer, decode_keys, decode_query, encode_answer
from ekorn.driver.queries.state_reader import QueryAddress
from ekorn.driver.runtime_folder import runtime_folder
from ekorn.engine.slots.link_certificate import certificate_for
from ekorn.errors import ConfigurationError, EkornError, QueryRefused, StateNotServed, UnknownJob
from ekorn.functions.results.job_status import JobStatus
from ekorn.links.encryption import Certificate
from ekorn.links.link import Link, MessageTooLarge
from ekorn.links.listener import Listener
from ekorn.storage.key_file import read_key_file
from ekorn.storage.private_folder import PrivateFolder

__all__ = ["QueryServer", "answer_queries", "read_token", "token_file_name"]

_log = logging.getLogger(__name__)
_LEAST_TOKEN_BYTES = 16
_MOST_CLIENTS = 64  # connected at the same time: each has threads, queries and answers of its own
_MOST_TURNED_AWAY = 64  # further clients that may be told so at the same time; the others are closed without a word
_TURN_AWAY_S = 5.0  # how long such a client may take to ask
_MOST_UNANSWERED = 16  # the most queries of one client in flight; further ones wait in its connection


class QueryServer:
    """Answers the queries of some jobs at one port."""

    def __init__(self, settings: QueryableSettings, token: str, certificate: Certificate | None = None) -> None:
        """Listen.

        Raises:
            ConfigurationError: No port is free.
        """
        self._jobs: dict[str, StateQueries] = {}
        self._clients = 0
        self._counting = threading.Lock()
        self.token = token
        self._listener = _listener(settings, token.encode(), self._serve, certificate)
        self.host, self.port = self._listener.address[0], int(self._listener.address[1])
        self._listener.start()

    def add(self, job_id: str, queries: StateQueries) -> None:
        """Answer the queries of a job from now on. Thread-safe."""
        self._jobs[job_id] = queries

    def remove(self, job_id: str) -> bool:
        """Stop answering the queries of a job; return whether other jobs are left. Thread-safe."""
        self._jobs.pop(job_id, None)
        return bool(self._jobs)

    def close(self) -> None:
        """Accept no more clients. The connections of clients go on, and their queries are refused."""
        self._listener.close()

    def _serve(self, link: Link) -> None:
        """Answer a client until it is gone. If there are too many, it is told so instead."""
        with self._counting:
            self._clients += 1
            clients = self._clients
        try:
            link.accept_at_most(MOST_QUERY_BYTES)
            if clients <= _MOST_CLIENTS:
                self._converse(link)
            elif clients <= _MOST_CLIENTS + _MOST_TURNED_AWAY:
                _turn_away(link)
            else:
                link.close()
        finally:
            with self._counting:
                self._clients -= 1

    def _converse(self, link: Link) -> None:
        """Pass the queries of a client on to slots. `AnswersInOrder` sends the answers."""
        answers = AnswersInOrder(link, f"{threading.current_thread().name}-answers", _MOST_UNANSWERED)
        try:
            while True:
                for message in link.receive_arrived():
                    answers.add(self._begin(message))
        except MessageTooLarge as error:
            answers.add(refusal(QueryRefused(f"{error}: ask for fewer keys per call")))
        except (EOFError, OSError):  # the client is gone
            pass
        answers.end()

    def _begin(self, message: bytes) -> PendingValues | Answer:
        try:
            query = decode_query(message)
            queries = self._jobs.get(query.job)
            if queries is None:
                raise UnknownJob(query.job, ", ".join(sorted(self._jobs)) or "none")
            keys = decode_keys(query.keys, queries.key_type(query.name))
            return queries.begin(query.name, keys, query.consistency)
        except Exception as error:
            return refusal(error)


def _turn_away(link: Link) -> None:
    """Tell a client that there are too many, as the answer to its first query."""
    why = f"the driver has {_MOST_CLIENTS} clients already; shut clients down that are not needed, or ask again later"
    link.settimeout(_TURN_AWAY_S)
    try:
        name = decode_query(link.receive()).name
        link.send(encode_answer(refusal(StateNotServed(name, why))))
    except (EkornError, EOFError, OSError) as error:
        _log.debug("a client beyond the limit was not told so: %s", error)
    link.close()


_servers: dict[tuple[QueryableSettings, LinkSettings], QueryServer] = {}
_servers_lock = threading.Lock()


def answer_queries(settings: QueryableSettings, links: LinkSettings, handle: JobHandle, queries: StateQueries) -> None:
    """Answer the queries of a job until it ends, at the port that the jobs of this driver share.

    Raises:
        ConfigurationError: No port is free, or the token file cannot be used.
    """
    shared, job_id = (settings, links), str(handle.job_id)
    with _servers_lock:
        server = _servers.get(shared)
        if server is None:
            token = _given_token(settings) or secrets.token_urlsafe(32)
            server = QueryServer(settings, token, certificate_for(links, settings.host))
            try:
                if settings.token_file is None:
                    _write_token(server)
            except BaseException:
                server.close()
                raise
            _servers[shared] = server
        server.add(job_id, queries)
    _log.info("queries of the state of job %s are answered on %s:%d", job_id, server.host, server.port)

    def end(status: JobStatus, savepoint_requested: bool) -> None:
        with _servers_lock:
            if not server.remove(job_id) and _servers.get(shared) is server:
                del _servers[shared]
                server.close()
                if settings.token_file is None:
                    _remove_token(server)

    handle.view.queries_at = QueryAddress(server.host, server.port, server.token)
    handle.at_end(end)


def _listener(
    settings: QueryableSettings, secret: bytes, serve: Callable[[Link], None], certificate: Certificate | None
) -> Listener:
    for port in settings.ports:
        try:
            return Listener((settings.host, port), secret, serve, "ekorn-query", certificate)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise ConfigurationError(
                    f"queries of state cannot be answered on {settings.host}: {error.strerror} "
                    f"({options.QUERYABLE_STATE_HOST.key})"
                ) from error
    tried = ", ".join(map(str, settings.ports[:5])) + (", ..." if len(settings.ports) > 5 else "")
    raise ConfigurationError(
        f"queries of state need a port, but none of {tried} is free on {settings.host}: set "
        f"{options.QUERYABLE_STATE_PORTS.key} to a range such as 9069-9169, or to 0 for any free port"
    )


# --------------------------------------------------------------------------------------------------------- the token


def _given_token(settings: QueryableSettings) -> str | None:
    if settings.token_file is None:
        return None
    token = read_key_file(settings.token_file, options.QUERYABLE_STATE_TOKEN_FILE.key).decode("utf-8").strip()
    if len(token) < _LEAST_TOKEN_BYTES:
        raise ConfigurationError(
            f"{options.QUERYABLE_STATE_TOKEN_FILE.key}: the token in {settings.token_file!r} is shorter than "
            f"{_LEAST_TOKEN_BYTES} characters"
        )
    return token


def token_file_name(port: int) -> str:
    """Return the name of the token file of a port, in the runtime folder."""
    return f"queries-{port}.token"


def read_token(port: int) -> str:
    """Return the token that a driver of this user on this machine made for a port.

    Raises:
        ConfigurationError: There is none.
    """
    path = runtime_folder() / token_file_name(port)
    try:
        return read_key_file(str(path), "the token of queries").decode("utf-8").strip()
    except ConfigurationError:
        raise ConfigurationError(
            f"no driver of this user that generated its own token answers queries on port {port} ({path}): give the "
            "token"
        ) from None


def _write_token(server: QueryServer) -> None:
    with PrivateFolder.opened(str(runtime_folder())) as folder:
        folder.write(token_file_name(server.port), server.token.encode())


def _remove_token(server: QueryServer) -> None:
    try:
        with PrivateFolder.opened(str(runtime_folder())) as folder:
            folder.delete(token_file_name(server.port))
    except (OSError, EkornError) as error:
        _log.info("the token of port %d could not be removed: %s", server.port, error)
