"""The certificates of the test broker: an authority, a server certificate for 127.0.0.1, and that of a client."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

KEY_PASSWORD = "canary-key-password"
_PEM = serialization.Encoding.PEM


def write_certificates(folder: Path) -> None:
    """Write `ca.pem`, which both sides trust; `server.pem` and `client.pem`: a key and its certificates.

    `client-secret.pem` is the client's key, encrypted with `KEY_PASSWORD`.
    """
    authority_key, server_key, client_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    authority_name, server_name = _name("tests"), _name("127.0.0.1")
    authority = (
        _begun(authority_name, authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    server = (
        _begun(server_name, authority_name, server_key.public_key())
        .add_extension(address, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    client = _begun(_name("alice"), authority_name, client_key.public_key()).sign(authority_key, hashes.SHA256())
    trusted = authority.public_bytes(_PEM)
    (folder / "ca.pem").write_bytes(trusted)
    (folder / "server.pem").write_bytes(_key(server_key) + server.public_bytes(_PEM) + trusted)
    (folder / "client.pem").write_bytes(_key(client_key) + client.public_bytes(_PEM) + trusted)
    (folder / "client-secret.pem").write_bytes(_key(client_key, KEY_PASSWORD))


def _key(key: ec.EllipticCurvePrivateKey, password: str | None = None) -> bytes:
    hidden = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, hidden)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _begun(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
    )
