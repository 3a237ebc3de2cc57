"""The key that signs checkpoints: read from a file, and used for the HMAC of the metadata.

Only the driver has the key. Slots get the SHA-256 of every state file from signed metadata and compare it before they
unpickle anything. docs/formats/metadata.md describes the signature.
"""

from __future__ import annotations

import hashlib
import hmac

from ekorn.config import options
from ekorn.errors import ConfigurationError
from ekorn.storage.key_file import read_key_file

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


def read_signing_key(path: str | None, option: str = options.SIGNING_KEY_FILE.key) -> SigningKey | None:
    """Read the key in a file; None without a path. `option` is what names the file, for messages.

    Raises:
        ConfigurationError: The file cannot be read, belongs to another user, is open to other users, or is too short.
    """
    if path is None:
        return None
    secret = read_key_file(path, option)
    if len(secret) < LEAST_KEY_BYTES:
        raise ConfigurationError(
            f"{option}: {path!r} holds {len(secret)} bytes; a key needs at least "
            f"{LEAST_KEY_BYTES} random bytes (head -c {LEAST_KEY_BYTES} /dev/urandom)"
        )
    return SigningKey(secret)
