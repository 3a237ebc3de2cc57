"""TLS and SASL for `wire.py`, by the properties that confluent-kafka has too: PLAIN and SCRAM."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import socket
import ssl
from collections.abc import Callable
from typing import Protocol

from ekorn.connectors.kafka.client_properties import ClientProperties
from ekorn.errors import ConfigurationError

_HASHES: dict[str, Callable[..., hashlib._Hash]] = {"SCRAM-SHA-256": hashlib.sha256, "SCRAM-SHA-512": hashlib.sha512}
_UNKNOWN_HERE = ("ssl.keystore.location", "ssl.certificate.pem", "ssl.key.pem", "ssl.engine.location")


class Dialogue(Protocol):
    """One side of a SASL exchange."""

    def answer(self, challenge: bytes | None) -> bytes | None:
        """Return the next message to the broker, or None after the last; the first challenge is None."""
        ...


class Login:
    """How connections are secured. Its repr shows no secrets."""

    def __init__(self, properties: ClientProperties) -> None:
        given = properties.for_librdkafka()
        protocol = given.get("security.protocol", "plaintext").upper()
        self._given = given
        self._tls = _tls_context(given) if protocol.endswith("SSL") else None
        self.mechanism: str | None = None
        self.user = given.get("sasl.username", "")
        if protocol.startswith("SASL"):
            self.mechanism = given.get("sasl.mechanism", given.get("sasl.mechanisms", "GSSAPI"))
            if self.mechanism != "PLAIN" and self.mechanism not in _HASHES:
                raise ConfigurationError(
                    f"exactly-once output to Kafka cannot log in with the SASL mechanism {self.mechanism}: use PLAIN, "
                    "SCRAM-SHA-256, SCRAM-SHA-512 or TLS with client certificates, or DeliveryGuarantee.AT_LEAST_ONCE"
                )

    def wrap(self, raw: socket.socket, host: str) -> socket.socket:
        """Begin TLS on a connection, if it is wanted."""
        return raw if self._tls is None else self._tls.wrap_socket(raw, server_hostname=host)

    def dialogue(self) -> Dialogue:
        """Begin a login."""
        password = self._given.get("sasl.password", "")
        if self.mechanism == "PLAIN":
            return _Plain(self.user, password)
        assert self.mechanism is not None, "a login has a mechanism"
        return Scram(_HASHES[self.mechanism], self.user, password, base64.b64encode(os.urandom(24)).decode())

    def __repr__(self) -> str:
        return f"Login({self.mechanism}, {self.user!r})"


def _tls_context(given: dict[str, str]) -> ssl.SSLContext:
    for name in _UNKNOWN_HERE:
        if name in given:
            raise ConfigurationError(
                f"exactly-once output to Kafka cannot use the property {name}: set ssl.certificate.location and "
                "ssl.key.location, which name PEM files"
            )
    context = ssl.create_default_context(cafile=given.get("ssl.ca.location"), cadata=given.get("ssl.ca.pem"))
    if given.get("ssl.endpoint.identification.algorithm", "https") in ("none", ""):
        context.check_hostname = False
    if given.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if "ssl.certificate.location" in given:
        context.load_cert_chain(
            given["ssl.certificate.location"], given.get("ssl.key.location"), given.get("ssl.key.password")
        )
    return context


class _Plain:
    def __init__(self, user: str, password: str) -> None:
        self._message = f"\0{user}\0{password}".encode()

    def answer(self, challenge: bytes | None) -> bytes | None:
        return self._message if challenge is None else None


class Scram:
    """SCRAM, RFC 5802, without channel binding.

    Args:
        make_hash: The hash function.
        user: The user.
        password: The password.
        nonce: A text that was never used before.
    """

    def __init__(self, make_hash: Callable[..., hashlib._Hash], user: str, password: str, nonce: str) -> None:
        self._make_hash = make_hash
        self._password = password.encode()
        self._nonce = nonce
        self._first = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        self._expected: bytes | None = None

    def answer(self, challenge: bytes | None) -> bytes | None:
        if challenge is None:
            return f"n,,{self._first}".encode()
        fields = dict(part.split("=", 1) for part in challenge.decode().split(",") if "=" in part)
        if self._expected is None:
            return self._proof(challenge.decode(), fields)
        if not hmac.compare_digest(base64.b64decode(fields.get("v", "")), self._expected):
            raise ConnectionError("the broker did not prove that it knows the password")
        return None

    def _proof(self, challenge: str, fields: dict[str, str]) -> bytes:
        if not fields.get("r", "").startswith(self._nonce):
            raise ConnectionError("the broker answered a different login")
        name = self._make_hash().name
        salted = hashlib.pbkdf2_hmac(name, self._password, base64.b64decode(fields["s"]), int(fields["i"]))
        client_key = hmac.digest(salted, b"Client Key", name)
        final = f"c=biws,r={fields['r']}"
        signed = f"{self._first},{challenge},{final}".encode()
        signature = hmac.digest(self._make_hash(client_key).digest(), signed, name)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._expected = hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name)
        return f"{final},p={base64.b64encode(proof).decode()}".encode()
