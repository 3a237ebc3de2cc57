"""Open a directory on remote storage with the library for its scheme, and call the storage with retries."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import TypeVar

from ekorn.errors import ConfigurationError
from ekorn.extras import need
from ekorn.storage.access import Access, OpenedDirectory
from ekorn.storage.arrow_access import open_arrow
from ekorn.storage.fsspec_access import open_fsspec
from ekorn.storage.locations import masked, scheme_of, secrets_of, shown
from ekorn.storage.retry import Patience

__all__ = ["RemoteCalls", "need_package_for", "open_access"]

T = TypeVar("T")

_ARROW_SCHEMES = frozenset({"s3", "s3a", "s3n", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss"})


def open_access(address: str) -> OpenedDirectory:
    """Open the directory at a URL.

    Raises:
        ConfigurationError: No library knows the scheme, the library for it is not installed, or it refuses the URL.
    """
    scheme, where = scheme_of(address), shown(address)
    if "#" in address:
        raise ConfigurationError(f"an address of {scheme}:// cannot have a '#' in it: write %23")
    if "\0" in address or ".." in where.split("/"):
        raise ConfigurationError(f"not the URL of a directory: {where!r}; no '..'")
    try:
        opened = open_arrow(address) if scheme in _ARROW_SCHEMES else None
        return opened or open_fsspec(address)
    except ConfigurationError:
        raise
    except Exception as error:  # each library raises errors of its own; the URL or the machine's set-up is at fault
        text = masked(f"{type(error).__name__}: {error}", secrets_of(address))
        raise ConfigurationError(f"cannot open {where!r}: {text}") from None


def need_package_for(address: str) -> None:
    """Check that the library for a URL's scheme is installed, without opening the directory.

    Raises:
        ConfigurationError: It is not.
    """
    scheme = scheme_of(address)
    need("pyarrow" if scheme in _ARROW_SCHEMES else "fsspec", f"the scheme {scheme!r} of {shown(address)!r}")


class RemoteCalls:
    """Calls to one storage: repeated while the error may pass, and raised as `OSError` without credentials."""

    def __init__(self, access: Access, secrets: tuple[str, ...], patience: Patience | None = None) -> None:
        self.access = access
        self._secrets = secrets
        self._patience = patience or Patience()

    def call(self, action: Callable[[], T], *, verb: str, url: str) -> T:
        """Return the result of the action; `verb` and `url` (without credentials) say in errors what failed.

        Raises:
            FileNotFoundError: The library raised it.
            PermissionError: The library raised it.
            OSError: The library raised any other error.
        """
        try:
            return self._patience.call(action, self.access.is_final)
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url) from None
        except Exception as error:  # each library raises errors of its own
            number = error.errno if isinstance(error, OSError) and error.errno else errno.EIO
            text = masked(str(error) or type(error).__name__, self._secrets)
            kind = PermissionError if isinstance(error, PermissionError) else OSError
            raise kind(number, f"cannot {verb} {url}: {text}") from None
