"""A certificate for 127.0.0.1 that no authority has signed, with its key."""

from __future__ import annotations

import subprocess
from pathlib import Path

_OPENSSL = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=ekorn "
    "-addext subjectAltName=IP:127.0.0.1 -keyout - -out -"
)


def self_signed(path: Path) -> Path:
    """Write a certificate to a file; return the file."""
    path.write_bytes(subprocess.run(_OPENSSL.split(), capture_output=True, check=True).stdout)
    return path
