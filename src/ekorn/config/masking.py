"""What people may see of settings and texts: secrets are replaced by asterisks.

A value is hidden by the name of its key, and every value is also searched: for user names and passwords in URLs, for
private keys in PEM format, for `name=value` where the name is that of a secret, and for values that another key of the
same settings declares secret. Hiding too much costs a look into the configuration file. Showing too much costs a
password. So doubts hide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "HIDDEN",
    "USER_IS_NO_SECRET",
    "is_secret",
    "masked",
    "masked_about",
    "masked_settings",
    "masked_text",
    "masked_urls",
    "without",
]

HIDDEN = "******"

# Flink: the value of a key that contains one of its words is masked in texts; these are its words and more, without
# the characters between the parts of a name.
_WORDS = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "credential",
    "apikey",
    "accountkey",
    "accesskey",
    "privatekey",
    "servicekey",
    "keypem",
    "authparams",
    "basicauth",
    "authorization",
    "signature",
    "jaas",
    "httpheaders",
    "oauthbearerconfig",
)
_PARTS = frozenset({"pass", "pw", "pwd", "sig"})  # too short to be looked for within words
_BETWEEN = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")
# Schemes whose addresses name a user or a container before the `@`; elsewhere it is a key.
USER_IS_NO_SECRET = frozenset({"abfs", "abfss", "hdfs", "viewfs", "webhdfs", "sftp", "ssh", "ftp", "smb"})
# Possessive quantifiers and bounds: a hostile text must not take more than linear time. A secret may hold a slash that
# should have been encoded: then a colon without a port stands before the slash.
_USER_INFO = re.compile(
    r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]{0,40})://"
    r"(?:([^/\s\"'<>]{0,500})|([^/:\s\"'<>]{0,200}:(?!\d+/)[^\s\"'<>@]{0,500}))@"
)
_ORACLE = re.compile(
    r"(jdbc:oracle:[a-z0-9]{1,9}:)[^/\s\"'@]{1,200}/[^\s\"'<>@]{0,500}@", re.IGNORECASE
)  # user/password@
_PRIVATE_KEY = re.compile(
    r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----).*?(-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)", re.DOTALL
)
_NAME = re.compile(
    r"""(?<![A-Za-z0-9_.\-])(?P<name>[A-Za-z0-9_.\-]++)(?P<between>["']?(?:\s{0,9}[=:]\s{0,9}|(?<=\w)\s{1,9}))"""
)
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.|'')*+'""")
_BARE, _BARE_WORD = re.compile(r"[^,;&}\]\n]*+"), re.compile(r"[^,;&}\]\s]*+")
_SHORTEST = 8  # characters of a secret that is looked for in other values: a shorter one may be an ordinary word


def is_secret(name: str) -> bool:
    """Return whether the value of a key is secret, by the key's name.

    >>> [is_secret(name) for name in ("db.passwd", "dbPwd", "DB_PASS", "s3.secret-key", "ssl.key", "bypass", "key.by")]
    [True, True, True, True, True, False, False]
    """
    parts = [part.lower() for part in _BETWEEN.split(name) if part]
    joined = "".join(parts)
    return (
        any(word in joined for word in _WORDS)
        or any(part in _PARTS or part.endswith("pwd") for part in parts)
        or (len(parts) > 1 and parts[-1] == "key")
    )


def masked(key: str, value: Any) -> Any:
    """Return the value of a key for people to read. Dicts and lists are searched; other objects stay as they are.

    >>> masked("state.dir", "s3://KEY:SECRET@bucket/dir"), masked("db.pwd", "hush"), masked("parallelism", 4)
    ('s3://******@bucket/dir', '******', 4)
    """
    if is_secret(key):
        return HIDDEN
    match value:
        case str():
            return masked_text(value)
        case Mapping():
            return masked_settings(value)
        case list() | tuple():
            return [masked("", each) for each in value]
        case _:
            return value


def masked_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings for people to read. What one key declares secret is hidden in the values of the others too.

    >>> masked_settings({"db.password": "hush-hush", "arguments": "connect me hush-hush"})
    {'db.password': '******', 'arguments': 'connect me ******'}
    """
    secrets = sorted(_secrets_in(settings), key=len, reverse=True)
    return {key: _without_in(masked(str(key), value), secrets) for key, value in settings.items()}


def masked_text(text: str) -> str:
    """Return a text without the user info of URLs, and without the values of names that are those of secrets.

    >>> masked_text("jdbc:postgresql://me:hush@host/db?user=me&password=hush&ssl=true")
    'jdbc:postgresql://******@host/db?user=me&password=******&ssl=true'
    >>> masked_text("password:'a,b',shop:north")
    'password:******,shop:north'
    """
    text, found, at = _PRIVATE_KEY.sub(rf"\1{HIDDEN}\2", masked_urls(text)), [], 0
    while (match := _NAME.search(text, at)) is not None:
        is_hidden = is_secret(match["name"]) and (match["between"].strip() or match["name"].startswith("-"))
        end = match.end() if is_hidden else match.end("name")
        found.append(text[at:end])
        at = end
        if is_hidden:
            bare = _BARE if ":" in match["between"] else _BARE_WORD
            value = _QUOTED.match(text, at) or bare.match(text, at)
            assert value is not None  # a bare value may be empty
            found.append(HIDDEN)
            at = value.end()
    return "".join([*found, text[at:]])


def masked_about(text: str, *settings: Mapping[str, Any]) -> str:
    """Return a text about something that has settings, without the values that these settings declare secret either.

    >>> masked_about("cannot log in with hush-hush at http://me:x@host", {"db.password": "hush-hush"})
    'cannot log in with ****** at http://******@host'
    """
    return without(masked_text(text), {secret for each in settings for secret in _secrets_in(each)})


def masked_urls(text: str) -> str:
    """Return a text without the user info of the URLs in it.

    >>> masked_urls("s3://KEY:SE/CRET@bucket, http://host:80/a@b and hdfs://me@host")
    's3://******@bucket, http://host:80/a@b and hdfs://me@host'
    """
    return _ORACLE.sub(rf"\1{HIDDEN}@", _USER_INFO.sub(_without_user_info, text))


def _without_user_info(match: re.Match[str]) -> str:
    scheme, user_info = match[1], match[2] or match[3] or ""
    user, colon, _ = user_info.partition(":")
    if scheme.lower() in USER_IS_NO_SECRET:
        return f"{scheme}://{user}{colon}{HIDDEN if colon else ''}@"
    return f"{scheme}://{HIDDEN}@"


def without(text: str, secrets: Iterable[str], mark: str = HIDDEN) -> str:
    """Return a text with each secret replaced by a mark, the longest first."""
    for secret in sorted({each for each in secrets if each}, key=len, reverse=True):
        text = text.replace(secret, mark)
    return text


def _secrets_in(settings: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found |= _secrets_in(value)
        elif is_secret(str(key)) and isinstance(value, str) and len(value) >= _SHORTEST:
            found.add(value)
    return found


def _without_in(value: Any, secrets: list[str]) -> Any:
    match value:
        case str():
            return without(value, secrets)
        case dict():
            return {key: _without_in(each, secrets) for key, each in value.items()}
        case list():
            return [_without_in(each, secrets) for each in value]
        case _:
            return value
