"""Decides in the driver whether the links of a job are encrypted, and provides the certificate.

Python's standard library cannot make certificates. The driver makes one for each job with the package `cryptography`
or the command `openssl`, or reads the one that the user gives. Slots and Spark's tasks need neither.
"""

from __future__ import annotations

import datetime
import ipaddress
import shutil
import subprocess
from collections.abc import Callable, Sequence

from ekorn.config import options
from ekorn.config.settings.deployment_settings import LinkSettings
from ekorn.errors import DeploymentError
from ekorn.extras import install_command
from ekorn.links.encryption import CalledSide, Certificate
from ekorn.storage.key_file import read_key_file
from ekorn.storage.result_modes import PRIVATE_UMASK

Maker = Callable[[], Certificate | None]

_OPENSSL = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=ekorn "
    "-keyout {0} -out {0}"
)


def made_by_package() -> Certificate | None:
    """Make a certificate with the package `cryptography`; None if it is not installed."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
    except ImportError:
        return None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ekorn")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=3650))  # not checked: both sides prove that they know the secret
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Certificate(certificate.public_bytes(serialization.Encoding.PEM) + private)


def made_by_command() -> Certificate | None:
    """Make a certificate with the command `openssl`; None if there is no such command."""
    if shutil.which("openssl") is None:
        return None
    command = _OPENSSL.format("/dev/stdout").split()  # the private key is written to no disk
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, umask=PRIVATE_UMASK)
    if done.returncode != 0 or b"PRIVATE KEY" not in done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise DeploymentError(f"openssl did not create a certificate for the links of the job: {' '.join(said)}")
    return Certificate(done.stdout)


def certificate_for(
    links: LinkSettings, host: str, makers: Sequence[Maker] = (made_by_package, made_by_command)
) -> Certificate | None:
    """Return the certificate of a job's links; None if they stay plain.

    Args:
        links: The user's settings.
        host: The address at which the driver listens for its slots. Nobody on another machine can reach a loopback
            address, so all slots are on this machine then.
        makers: Make a certificate, or return None where they cannot.

    Raises:
        DeploymentError: The links must be encrypted, and there is no certificate.
        ConfigurationError: The certificate file cannot be read, or is open to other users.
    """
    if links.encryption == "off" or (links.encryption == "auto" and ipaddress.ip_address(host).is_loopback):
        return None
    if links.certificate_file is not None:
        given = Certificate(read_key_file(links.certificate_file, options.LINK_CERTIFICATE_FILE.key))
        CalledSide(given)  # raises here, and not in each slot, if OpenSSL refuses the certificate
        return given
    made = next((certificate for make in makers if (certificate := make()) is not None), None)
    if made is None:
        raise DeploymentError(
            f"connections between the driver at {host} and its slots cannot be encrypted: creating a certificate needs "
            f"the package cryptography or the command openssl, and neither is installed. Run {install_command('tls')} "
            f"in the driver's environment, or set {options.LINK_CERTIFICATE_FILE.key} to a file that you created "
            f"elsewhere with `{_OPENSSL.format('ekorn.pem')}`. On a network that you trust, "
            f"{options.LINK_ENCRYPTION.key}: off permits plain connections"
        )
    return made
