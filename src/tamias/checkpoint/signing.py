"""The key that signs checkpoints: read from a file, and used for the HMAC of the metadata.

Only the driver has the key. Slots get the SHA-256 of every state file from signed metadata and compare it before they
unpickle anything. docs/formats/metadata.md describes the signature.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat

from tamias.config import options
from tamias.errors import ConfigurationError

__all__ = ["LEAST_KEY_BYTES", "SigningKey", "read_signing_key"]

LEAST_KEY_BYTES = 32


class SigningKey:
    """A secret that proves who wrote a checkpoint. The secret is in no `repr` and cannot be pickled."""

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(self, data: bytes) -> str:
        """Return the HMAC-SHA256 of some bytes, in hex digits."""
        return hmac.new(self._secret, data, hashlib.sha256).hexdigest()

    def matches(self, data: bytes, signature: str) -> bool:
        """Return whether a signature is that of the bytes. The time it takes does not depend on the signature."""
        return hmac.compare_digest(self.sign(data).encode("ascii"), signature.encode("utf-8", "surrogatepass"))

    def __reduce__(self) -> str:
        raise TypeError("a signing key stays in the driver's process and cannot be pickled")


def read_signing_key(path: str | None) -> SigningKey | None:
    """Read the key that `tamias.checkpoint.signing-key-file` names; None without a path.

    Raises:
        ConfigurationError: The file cannot be read, belongs to another user, is open to other users, or is too short.
    """
    if path is None:
        return None
    prefix = f"{options.SIGNING_KEY_FILE.key}: {path!r}"
    try:
        # The checks are made on the open file, so that nobody can put another file in its place between two steps.
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise ConfigurationError(f"{prefix} is not a regular file")
            if found.st_uid not in (os.geteuid(), 0):
                raise ConfigurationError(f"{prefix} belongs to user {found.st_uid}; give a file of this user")
            if found.st_mode & 0o077:
                mode = stat.S_IMODE(found.st_mode)
                raise ConfigurationError(f"{prefix} is open to other users (mode {mode:04o}); run chmod 600 on it")
            secret = file.read()
    except OSError as error:
        raise ConfigurationError(f"{prefix} cannot be read: {error.strerror}; give a readable key file") from error
    if len(secret) < LEAST_KEY_BYTES:
        raise ConfigurationError(
            f"{prefix} holds {len(secret)} bytes; a key needs at least {LEAST_KEY_BYTES} random bytes "
            f"(head -c {LEAST_KEY_BYTES} /dev/urandom)"
        )
    return SigningKey(secret)
