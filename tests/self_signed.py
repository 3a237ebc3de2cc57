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


def signed_by_authority(folder: Path) -> tuple[Path, Path]:
    """Write a certificate for 127.0.0.1 that an authority of our own has signed; return its file and the authority's.

    The file of the server has its certificate and its key, that of the authority its certificate alone.
    """
    key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    authority, request, server = folder / "authority.pem", folder / "request.pem", folder / "signed.pem"
    _run(f"openssl req -x509 {key} -days 2 -subj /CN=authority -keyout {folder}/authority.key -out {authority}")
    _run(f"openssl req {key} -subj /CN=server -keyout {folder}/server.key -out {request}")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    by = f"-CA {authority} -CAkey {folder}/authority.key -CAcreateserial -extfile {folder}/names"
    _run(f"openssl x509 -req -in {request} {by} -days 2 -out {server}")
    server.write_text(server.read_text() + (folder / "server.key").read_text())
    return server, authority


def _run(command: str) -> None:
    subprocess.run(command.split(), capture_output=True, check=True)
