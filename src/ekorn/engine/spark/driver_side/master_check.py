"""Runs in the driver: checks the address of a Spark cluster before Spark starts.

Spark asks an unreachable master for more than a minute, and then fails with an error of Java that does not name it. The
same happens at a port that accepts connections and never answers, or at another server's. So each address is asked
something that needs no authentication: a master for a file that it does not have, Kubernetes for its version. A server
that closes the connection without an answer is asked again with TLS. A master that was started just now does not listen
yet, so refused connections are tried again.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
import struct
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from ekorn.errors import DeploymentError

__all__ = ["check_master"]

_PATIENCE_S = 9.0  # for all masters together; a master that is busy or was started just now may take seconds
_PAUSE_S = 0.2
_REFUSED = os.strerror(errno.ECONNREFUSED)
_NO_FILE = b"/files/ekorn-asks-whether-a-master-answers"
# A frame of Spark: its length, the type of a request for a stream, and the name of the stream with its length.
# A master answers that there is no such stream, without a line in its log; one with encrypted ports closes.
# An answer of Spark begins with its length in eight bytes, of which the first are 0.
_ASK_SPARK = struct.pack(">qBi", 13 + len(_NO_FILE), 6, len(_NO_FILE)) + _NO_FILE
_TLS_ALERT = 0x15
_ASK_KUBERNETES = b"GET /version HTTP/1.0\r\n\r\n"  # in clear: a server that expects TLS says so, or closes


def check_master(master: str, environment: Mapping[str, str] = os.environ) -> None:
    """Check that a master can be reached, as far as that is known without Spark.

    Raises:
        DeploymentError: The address has no form that Spark knows, nothing answers there, or YARN is not configured.
    """
    if master.startswith("spark://"):
        addresses = [_host_and_port(master, each) for each in master[len("spark://") :].split(",")]
        _check_reachable(master, addresses, _ASK_SPARK, _why_not_spark)
    elif master.startswith("k8s://"):
        url = urlsplit(address if "://" in (address := master[len("k8s://") :]) else f"https://{address}")
        try:
            port = url.port or (80 if url.scheme == "http" else 443)
        except ValueError:
            raise _malformed(master) from None
        if not url.hostname:
            raise _malformed(master)
        _check_reachable(master, [(url.hostname, port)], _ASK_KUBERNETES, lambda answer: None)
    elif master == "yarn":
        if not environment.get("HADOOP_CONF_DIR") and not environment.get("YARN_CONF_DIR"):
            raise DeploymentError(
                "the Spark master is 'yarn', but neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set: set one of them to "
                "the directory with yarn-site.xml"
            )
    elif not re.fullmatch(r"local(\[.*\])?|local-cluster\[.*\]", master) and "://" not in master:
        raise _malformed(master)


def _host_and_port(master: str, address: str) -> tuple[str, int]:
    found = re.fullmatch(r"\[?([^\s/@]+?)\]?:(\d{1,5})", address.strip())
    if found is None or not 0 < int(found[2]) < 65536:
        raise _malformed(master)
    return found[1], int(found[2])


def _malformed(master: str) -> DeploymentError:
    return DeploymentError(
        f"{master!r} is not the address of a Spark master: write local[N], spark://HOST:PORT, yarn or k8s://HOST:PORT"
    )


def _why_not_spark(answer: bytes) -> str | None:
    """Return why an answer is not that of a Spark master; None if it may be."""
    if answer.startswith(b"HTTP/"):
        return "a web server answers there; Spark's web page has another port than the master, which is usually 7077"
    if answer[0] not in (0, _TLS_ALERT):
        return f"another server answers there, with {answer[:40]!r}"
    return None


def _check_reachable(
    master: str, addresses: list[tuple[str, int]], question: bytes, why_not: Callable[[bytes], str | None]
) -> None:
    began_s = time.monotonic()
    left_s = _PATIENCE_S
    while True:
        found: dict[tuple[str, int], str] = {}
        for address in addresses:
            reason = _why_unusable(address, question, why_not, left_s / len(addresses))
            if reason is None:
                return  # one master suffices: the others stand by
            found[address] = reason
        left_s = _PATIENCE_S - (time.monotonic() - began_s)
        if set(found.values()) != {_REFUSED} or left_s < _PAUSE_S:
            break
        time.sleep(_PAUSE_S)
    reasons = "; ".join(f"{host}:{port}: {reason}" for (host, port), reason in found.items())
    raise DeploymentError(
        f"the Spark master {master!r} cannot be reached ({reasons}): check that it runs, and the host and port of "
        "spark.master"
    )


def _why_unusable(
    address: tuple[str, int], question: bytes, why_not: Callable[[bytes], str | None], patience_s: float
) -> str | None:
    """Ask one address; return why it is of no use, or None."""
    until_s = time.monotonic() + patience_s
    try:
        connection = socket.create_connection(address, timeout=patience_s / 2)
    except OSError as error:
        return str(error.strerror or error)
    with connection:
        try:
            connection.settimeout(_left_s(until_s))
            connection.sendall(question)
            answer = connection.recv(4096)
        except TimeoutError:
            return "it accepts connections and does not answer"
        except OSError:
            answer = b""  # it closes the connection
    if answer:
        return why_not(answer)
    return None if _answers_tls(address, _left_s(until_s)) else "it closes each connection without an answer"


def _left_s(until_s: float) -> float:
    return max(until_s - time.monotonic(), 0.1)


def _answers_tls(address: tuple[str, int], patience_s: float) -> bool:
    """Return whether a server answers the greeting of TLS, be it with a refusal."""
    greeting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    greeting.check_hostname, greeting.verify_mode = False, ssl.CERT_NONE  # nothing is sent: Spark checks who it is
    try:
        with (
            socket.create_connection(address, timeout=patience_s) as connection,
            greeting.wrap_socket(connection, do_handshake_on_connect=False) as encrypted,
        ):
            encrypted.do_handshake()
            return True
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
        return False
    except ssl.SSLError:
        return True  # it answers that it does not like this client
    except OSError:
        return False
