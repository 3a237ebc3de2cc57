"""A service with a certificate, from end to end: every command over TLS, and nothing of it readable on the way."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ekorn.cli.main import main
from ekorn.config.settings.service_settings import ServiceSettings
from ekorn.config.settings.web_settings import WebSettings
from ekorn.service.service_process import StandingService
from tests.live_jobs import until
from tests.self_signed import self_signed, signed_by_authority
from tests.service.conftest import kill_drivers
from tests.sniffer import sniffing


@contextmanager
def service_with(settings: ServiceSettings, certificate: Path | None) -> Iterator[StandingService]:
    file = None if certificate is None else str(certificate)
    service = StandingService(replace(settings, web=WebSettings(port=0, certificate_file=file)))
    try:
        assert service.serving.token_file is not None
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("EKORN_SERVICE_ADDRESS", service.serving.address)
            environment.setenv("EKORN_SERVICE_TOKEN_FILE", service.serving.token_file)
            if file is not None:
                environment.setenv("EKORN_SERVICE_CERTIFICATE_FILE", file)
            yield service
    finally:
        service.close()
        kill_drivers(service)


@pytest.fixture
def encrypted(settings: ServiceSettings, tmp_path: Path) -> Iterator[StandingService]:
    with service_with(settings, self_signed(tmp_path / "server.pem")) as service:
        yield service


def live(programs: Path, folder: Path, argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Submit a job, look at it, save it, upgrade it and stop it, all by commands."""
    assert main(["run", "-d", str(programs / "endless.py"), argument]) == 0
    job = capsys.readouterr().out.split()[-1]
    until(lambda: main(["list", "-r"]) == 0)
    assert job in capsys.readouterr().out
    until(lambda: main(["logs", job]) == 0 and argument in capsys.readouterr().out)
    assert main(["savepoint", job, str(folder)]) == 0
    assert main(["upgrade", job, str(programs / "my_job.py")]) == 0
    until(lambda: main(["list", "-r"]) == 0)
    assert main(["stop", "-p", str(folder), job]) == 0
    until(lambda: main(["list", "-r"]) == 1)


@pytest.mark.parametrize("is_encrypted", [True, False])
def test_a_jobs_life_shows_token_arguments_and_answers_in_no_packet_of_a_service_with_a_certificate(
    is_encrypted: bool,
    settings: ServiceSettings,
    programs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    argument, name = (f"canary-{what}-{os.urandom(8).hex()}" for what in ("argument", "name"))
    for program in programs.glob("*.py"):
        program.write_text(program.read_text().replace('"endless"', f'"{name}"'))
    with service_with(settings, self_signed(tmp_path / "server.pem") if is_encrypted else None) as service:
        token = Path(str(service.serving.token_file)).read_text().strip()
        with sniffing("lo", token.encode(), argument.encode(), name.encode()) as sniffer:
            live(programs, tmp_path / "saved", argument, capsys)
            if is_encrypted:
                until(lambda: sniffer.packets > 50)
                assert list(sniffer.seen.values()) == [0, 0, 0]
            else:
                until(lambda: all(sniffer.seen.values()))


def test_a_service_with_a_certificate_speaks_nothing_but_tls(encrypted: StandingService, tmp_path: Path) -> None:
    host, port = encrypted.serving.address.removeprefix("https://").rsplit(":", 1)
    token = Path(str(encrypted.serving.token_file)).read_text().strip()
    plain = http.client.HTTPConnection(host, int(port), timeout=30)
    with pytest.raises((http.client.HTTPException, OSError)):
        plain.request("GET", "/service/jobs", headers={"Authorization": f"Bearer {token}"})
        plain.getresponse()
    plain.close()
    context = ssl.create_default_context(cafile=str(tmp_path / "server.pem"))
    with (
        socket.create_connection((host, int(port)), timeout=30) as sock,
        context.wrap_socket(sock, server_hostname=host) as wrapped,
    ):
        assert wrapped.version() in ("TLSv1.2", "TLSv1.3")


def test_another_certificate_at_the_same_address_gets_no_token(
    encrypted: StandingService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EKORN_SERVICE_CERTIFICATE_FILE", str(self_signed(tmp_path / "other.pem")))
    assert main(["list"]) == 1
    assert "certificate" in capsys.readouterr().err


def test_a_client_that_knows_the_authority_runs_a_job_and_refuses_the_certificate_under_another_name(
    settings: ServiceSettings,
    programs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    certificate, authority = signed_by_authority(tmp_path)
    with service_with(settings, certificate) as service:
        monkeypatch.setenv("EKORN_SERVICE_CERTIFICATE_FILE", str(authority))
        live(programs, tmp_path / "saved", "argument", capsys)
        monkeypatch.setenv("EKORN_SERVICE_ADDRESS", service.serving.address.replace("127.0.0.1", "localhost"))
        assert main(["list"]) == 1
        assert "no token was sent" in capsys.readouterr().err
        monkeypatch.setenv("EKORN_SERVICE_ADDRESS", service.serving.address)
        monkeypatch.delenv("EKORN_SERVICE_CERTIFICATE_FILE")
        assert main(["list"]) == 1
        assert "no token was sent" in capsys.readouterr().err
