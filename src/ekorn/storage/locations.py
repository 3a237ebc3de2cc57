"""Addresses of files and directories: parse and join local paths and URLs, and hide their secrets.

An address may carry credentials (`s3://key:secret@bucket/dir`) and options (`?endpoint_override=...`). Only the code
that opens a directory receives the address. Messages, logs and files contain `shown(address)`.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from ekorn.config.masking import USER_IS_NO_SECRET, without
from ekorn.errors import ConfigurationError

__all__ = ["check_path", "join", "masked", "options_of", "plain", "scheme_of", "secrets_of", "shown", "split_last"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def check_path(path: str) -> tuple[str, ...]:
    """Return the parts of a relative path that stays below its root.

    Raises:
        ConfigurationError: The path is empty, absolute, or steps upwards.

    >>> check_path("chk-7/_metadata")
    ('chk-7', '_metadata')
    """
    parts = tuple(path.split("/"))
    if "\\" in path or "\0" in path or any(part in ("", ".", "..") for part in parts) or ":" in parts[0]:
        raise ConfigurationError(f"not a path below a checkpoint directory: {path!r}; no '..', no absolute path")
    return parts


def scheme_of(address: str) -> str:
    """Return the scheme of a URL in lower case; empty for a local path.

    >>> scheme_of("S3://bucket/dir"), scheme_of("/var/lib")
    ('s3', '')
    """
    match = _SCHEME.match(address)
    return match[1].lower() if match is not None else ""


def plain(address: str) -> str:
    """Return the path that a `file:` URL names; return any other address unchanged.

    In a `file:` URL '?' and '#' are parts of names.

    >>> plain("file:///data/a%20b"), plain("file:/data"), plain("/data"), plain("s3://bucket/dir")
    ('/data/a b', '/data', '/data', 's3://bucket/dir')

    Raises:
        ConfigurationError: The URL names another host, or a path that is not absolute.
    """
    if address[:5].lower() != "file:":
        return address
    host, slash, path = address[5:].removeprefix("//").partition("/")
    if host not in ("", "localhost") or not slash:
        wrong = f"names the host {host!r}" if address[5:7] == "//" and host else "does not name an absolute path"
        raise ConfigurationError(f"{address!r} {wrong}; a local directory is file:///path")
    return "/" + unquote(path)


def shown(address: str) -> str:
    """Return the address for people: without credentials and options.

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
    user = user.partition(":")[0] if scheme in USER_IS_NO_SECRET else ""
    return f"{parts.scheme}://{user + at if user else ''}{host}{parts.path}".rstrip("/")


def join(address: str, path: str) -> str:
    """Return the address of a path below a directory.

    >>> join("s3://bucket/dir?region=eu-west-1", "chk-7")
    's3://bucket/dir/chk-7?region=eu-west-1'
    """
    if not scheme_of(address):
        return f"{address.rstrip('/')}/{path}"
    parts = urlsplit(address)
    return _with_path(parts, f"{parts.path.rstrip('/')}/{path}")


def split_last(address: str) -> tuple[str, str]:
    """Return the address of the parent directory, and the name in it.

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
    # Not `urlunsplit`: it drops the slashes before an empty host.
    return f"{parts.scheme}://{parts.netloc}{path}" + (f"?{parts.query}" if parts.query else "")


def options_of(address: str) -> dict[str, str]:
    """Return the options of an address: what follows the question mark.

    >>> options_of("s3://bucket/dir?region=eu-west-1&scheme=http")
    {'region': 'eu-west-1', 'scheme': 'http'}
    """
    return dict(parse_qsl(urlsplit(address).query, keep_blank_values=True)) if scheme_of(address) else {}


def secrets_of(address: str) -> tuple[str, ...]:
    """Return the secrets in an address, in each form in which the error message of a library may repeat them."""
    if not scheme_of(address):
        return ()
    parts = urlsplit(address)
    user = parts.netloc.rpartition("@")[0]
    if scheme_of(address) in USER_IS_NO_SECRET:
        user = user.partition(":")[2]
    found = {user, *user.split(":"), parts.query, *(value for _, value in parse_qsl(parts.query))}
    found |= {unquote(piece) for piece in found}
    return tuple(sorted((piece for piece in found if len(piece) > 3), key=len, reverse=True))


def masked(text: str, secrets: tuple[str, ...]) -> str:
    """Return a text with every secret replaced by asterisks.

    >>> masked("403 for key:secret", ("key:secret",))
    '403 for ***'
    """
    return without(text, secrets, "***")
