"""Commands that go to a service on another machine: its address, its token, its certificate."""

import pytest

from ekorn.cli.main import main
from ekorn.config.settings.web_settings import WebSettings
from ekorn.web.routes import Routes
from ekorn.web.serving import serve
from tests.self_signed import self_signed


@pytest.fixture
def encrypted(tmp_path, runtime_dir):
    """A service without jobs that speaks TLS."""
    certificate = self_signed(tmp_path / "server.pem")
    routes = Routes()
    routes.add("GET", "/service/jobs", lambda request: {"jobs": []})
    serving = serve(WebSettings(port=0, certificate_file=str(certificate)), routes, str(tmp_path / "token"))
    yield serving
    serving.server.close()


def test_a_command_trusts_the_certificate_that_it_is_given(encrypted, tmp_path, capsys):
    known = ["--token-file", str(tmp_path / "token"), "--certificate-file", str(tmp_path / "server.pem")]
    assert main(["list", "-m", encrypted.address, *known]) == 1
    assert "no such jobs" in capsys.readouterr().err


def test_a_command_trusts_the_certificate_that_the_environment_names(encrypted, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("EKORN_SERVICE_ADDRESS", encrypted.address)
    monkeypatch.setenv("EKORN_SERVICE_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("EKORN_SERVICE_CERTIFICATE_FILE", str(tmp_path / "server.pem"))
    assert main(["list"]) == 1
    assert "no such jobs" in capsys.readouterr().err


def test_a_certificate_that_nobody_vouches_for_is_refused(encrypted, tmp_path, capsys):
    assert main(["list", "-m", encrypted.address, "--token-file", str(tmp_path / "token")]) == 1
    assert "certificate" in capsys.readouterr().err
