"""Addresses of directories: local paths and URLs, taken apart, put together, and shown without their secrets.

An address may carry credentials (`s3://key:secret@bucket/dir`) and options (`?endpoint_override=...`). It is given to
those who open the directory, and to nobody else: what is shown, logged or stored is `shown(address)`.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from tamias.errors import ConfigurationError

__all__ = ["check_path", "join", "masked", "options_of", "plain", "scheme_of", "secrets_of", "shown", "split_last"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_USER_IS_NO_SECRET = frozenset({"abfs", "abfss", "hdfs", "viewfs", "webhdfs", "sftp", "ssh", "ftp", "smb"})


def check_path(path: str) -> tuple[str, ...]:
    """The parts of a relative path that stays below its root.

    Raises:
        ConfigurationError: It is empty, absolute, or steps upwards.

    >>> check_path("chk-7/_metadata")
    ('chk-7', '_metadata')
    """
    parts = tuple(path.split("/"))
    if "\\" in path or "\0" in path or any(part in ("", ".", "..") for part in parts) or ":" in parts[0]:
        raise ConfigurationError(f"not a path below a checkpoint directory: {path!r}; no '..', no absolute path")
    return parts


def scheme_of(address: str) -> str:
    """The scheme of a URL in lower case; empty for a local path.

    >>> scheme_of("S3://bucket/dir"), scheme_of("/var/lib")
    ('s3', '')
    """
    match = _SCHEME.match(address)
    return match[1].lower() if match is not None else ""


def plain(address: str) -> str:
    """The path that a `file:` URL names, where '?' and '#' are part of names; any other address as it is.

    >>> plain("file:///data/a%20b"), plain("file:/data"), plain("/data"), plain("s3://bucket/dir")
    ('/data/a b', '/data', '/data', 's3://bucket/dir')

    Raises:
        ConfigurationError: It names another host, or a path that is not absolute.
    """
    if address[:5].lower() != "file:":
        return address
    host, slash, path = address[5:].removeprefix("//").partition("/")
    if host not in ("", "localhost") or not slash:
        wrong = f"names the host {host!r}" if address[5:7] == "//" and host else "does not name an absolute path"
        raise ConfigurationError(f"{address!r} {wrong}; a local directory is file:///path")
    return "/" + unquote(path)


def shown(address: str) -> str:
    """The address for people: without credentials, without options.

    >>> shown("s3://key:secret@bucket/dir?region=eu-west-1")
    's3://bucket/dir'
    >>> shown("abfss://container@account.dfs.core.windows.net/dir")
    'abfss://container@account.dfs.core.windows.net/dir'
    """
    scheme = scheme_of(address)
    if not scheme:
        return address
    parts = urlsplit(address)
    user, at, host = parts.netloc.rpartition("@")
    user = user.partition(":")[0] if scheme in _USER_IS_NO_SECRET else ""
    return f"{parts.scheme}://{user + at if user else ''}{host}{parts.path}".rstrip("/")


def join(address: str, path: str) -> str:
    """The address of something below.

    >>> join("s3://bucket/dir?region=eu-west-1", "chk-7")
    's3://bucket/dir/chk-7?region=eu-west-1'
    """
    if not scheme_of(address):
        return f"{address.rstrip('/')}/{path}"
    parts = urlsplit(address)
    return _with_path(parts, f"{parts.path.rstrip('/')}/{path}")


def split_last(address: str) -> tuple[str, str]:
    """The address of the directory above, and the name in it.

    >>> split_last("s3://bucket/dir/chk-7?region=eu-west-1")
    ('s3://bucket/dir?region=eu-west-1', 'chk-7')
    >>> split_last("/chk-7")
    ('/', 'chk-7')
    """
    if not scheme_of(address):
        parent, _, name = address.rstrip("/").rpartition("/")
        return parent or "/", name
    parts = urlsplit(address)
    above, _, name = parts.path.rstrip("/").rpartition("/")
    return _with_path(parts, above), name


def _with_path(parts: SplitResult, path: str) -> str:
    # Not `urlunsplit`, which forgets the slashes before an empty host.
    return f"{parts.scheme}://{parts.netloc}{path}" + (f"?{parts.query}" if parts.query else "")


def options_of(address: str) -> dict[str, str]:
    """What stands behind the question mark.

    >>> options_of("s3://bucket/dir?region=eu-west-1&scheme=http")
    {'region': 'eu-west-1', 'scheme': 'http'}
    """
    return dict(parse_qsl(urlsplit(address).query, keep_blank_values=True)) if scheme_of(address) else {}


def secrets_of(address: str) -> tuple[str, ...]:
    """Every piece of an address that is shown to nobody, as it may turn up in somebody else's error message."""
    if not scheme_of(address):
        return ()
    parts = urlsplit(address)
    user = parts.netloc.rpartition("@")[0]
    if scheme_of(address) in _USER_IS_NO_SECRET:
        user = user.partition(":")[2]
    found = {user, *user.split(":"), parts.query, *(value for _, value in parse_qsl(parts.query))}
    found |= {unquote(piece) for piece in found}
    return tuple(sorted((piece for piece in found if len(piece) > 3), key=len, reverse=True))


def masked(text: str, secrets: tuple[str, ...]) -> str:
    """A text with every secret in it made unreadable.

    >>> masked("403 for key:secret", ("key:secret",))
    '403 for ***'
    """
    for secret in secrets:
        text = text.replace(secret, "***")
    return text
