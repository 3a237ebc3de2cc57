"""The properties of Kafka's client: Java's names and librdkafka's names; secrets are never shown.

Programs for Flink use the names of Java's client. Most are librdkafka's names too. Other names are translated if
librdkafka offers the same. Otherwise they are refused, with a message that says what to set instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ekorn.config.masking import HIDDEN, is_secret, without
from ekorn.errors import ConfigurationError

# Flink's source and sink always set these: records pass through as bytes, and schemas convert them.
_OF_BYTES = ("key.deserializer", "value.deserializer", "key.serializer", "value.serializer")
_JAAS_FIELD = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
_RENAMED = {
    "buffer.memory": "queue.buffering.max.kbytes",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "max.request.size": "message.max.bytes",
}
_STORES = (
    "write the certificates as PEM files, and set ssl.ca.location (and ssl.certificate.location, ssl.key.location)"
)
_REFUSED = {
    "sasl.login.callback.handler.class": "it names a Java class; set sasl.oauthbearer.method and its properties",
    "sasl.client.callback.handler.class": "it names a Java class; set sasl.oauthbearer.method and its properties",
    "interceptor.classes": "it names Java classes; use a map before the sink or after the source",
    "partitioner.class": "it names a Java class; set partitioner, or choose partitions in a serialization schema",
    "max.poll.records": "the job decides how many records are read at a time; leave it out",
}


class ClientProperties(Mapping[str, str]):
    """Properties as the program gave them. Their repr hides the values of secrets.

    >>> ClientProperties({"group.id": "g", "sasl.password": "hush"})
    {'group.id': 'g', 'sasl.password': '******'}
    """

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self._given = {_checked_name(name): _text(name, value) for name, value in (given or {}).items()}

    def __getitem__(self, name: str) -> str:
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __repr__(self) -> str:
        return repr({name: HIDDEN if is_secret(name) else value for name, value in self._given.items()})

    def with_values(self, more: Mapping[str, Any]) -> ClientProperties:
        """Return these properties with others added or replaced."""
        return ClientProperties({**self._given, **more})

    def without(self, *names: str) -> ClientProperties:
        """Return these properties without some."""
        return ClientProperties({name: value for name, value in self._given.items() if name not in names})

    def for_librdkafka(self) -> dict[str, str]:
        """Return the properties under librdkafka's names."""
        given = {name: value for name, value in self._given.items() if name not in _OF_BYTES}
        for name, reason in _REFUSED.items():
            if name in given:
                raise ConfigurationError(f"Kafka's property {name!r} cannot be used here: {reason}")
        _translate_stores(given)
        _translate_jaas(given)
        if "buffer.memory" in given:
            given["buffer.memory"] = str(max(1, _whole("buffer.memory", given["buffer.memory"]) // 1024))
        return {_RENAMED.get(name, name): value for name, value in given.items()}

    def hide(self, text: str) -> str:
        """Return a text, such as an error of the client, with the values of secrets removed."""
        secrets = {value for name, value in self._given.items() if is_secret(name) and value}
        secrets |= {value for name, value in _jaas_fields(self._given).items() if is_secret(name) and value}
        return without(text, secrets)


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"the name of a Kafka property is text, got {name!r}")
    return name


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    shown = HIDDEN if is_secret(name) else repr(value)
    raise TypeError(f"the value of Kafka's property {name!r} is text or a number, got {shown}")


def _whole(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ConfigurationError(f"Kafka's property {name!r} is a whole number, got {value!r}") from None


def _translate_stores(given: dict[str, str]) -> None:
    """Replace the stores of Java's TLS by files that librdkafka reads. Only PEM files are the same in both."""
    trust, trust_type = given.pop("ssl.truststore.location", None), given.pop("ssl.truststore.type", "JKS")
    if trust is not None:
        if trust_type.upper() != "PEM":
            raise ConfigurationError(
                f"Kafka's property 'ssl.truststore.location' names a {trust_type} store: {_STORES}"
            )
        given["ssl.ca.location"] = trust
    given.pop("ssl.truststore.password", None)  # the password of a JKS store, which was refused
    key_type = given.pop("ssl.keystore.type", None)
    if "ssl.keystore.location" in given and key_type != "PKCS12":
        if (key_type or "JKS").upper() != "PEM":
            raise ConfigurationError(
                f"Kafka's property 'ssl.keystore.location' names a {key_type or 'JKS'} store: {_STORES}"
            )
        given["ssl.certificate.location"] = given["ssl.key.location"] = given.pop("ssl.keystore.location")


def _translate_jaas(given: dict[str, str]) -> None:
    """Take user and password out of `sasl.jaas.config`, for PLAIN and SCRAM."""
    text = given.pop("sasl.jaas.config", None)
    if text is None:
        return
    fields = _jaas_fields({"sasl.jaas.config": text})
    if "username" not in fields or "password" not in fields:
        raise ConfigurationError(
            "Kafka's property 'sasl.jaas.config' has no username and password in double quotes; for PLAIN and SCRAM "
            "set sasl.username and sasl.password, for Kerberos sasl.kerberos.keytab and sasl.kerberos.principal"
        )
    given.setdefault("sasl.username", fields["username"])
    given.setdefault("sasl.password", fields["password"])


def _jaas_fields(given: Mapping[str, str]) -> dict[str, str]:
    found = _JAAS_FIELD.findall(given.get("sasl.jaas.config", ""))
    return {name: re.sub(r"\\(.)", r"\1", value) for name, value in found}
