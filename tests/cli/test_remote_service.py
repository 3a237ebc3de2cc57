"""Commands that go to a service on another machine: its address, its token, its certificate, its names of jobs."""

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
    assert "no matching jobs" in capsys.readouterr().err


def test_a_command_trusts_the_certificate_that_the_environment_names(encrypted, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("EKORN_SERVICE_ADDRESS", encrypted.address)
    monkeypatch.setenv("EKORN_SERVICE_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("EKORN_SERVICE_CERTIFICATE_FILE", str(tmp_path / "server.pem"))
    assert main(["list"]) == 1
    assert "no matching jobs" in capsys.readouterr().err


def test_a_certificate_that_nobody_vouches_for_is_refused(encrypted, tmp_path, capsys):
    assert main(["list", "-m", encrypted.address, "--token-file", str(tmp_path / "token")]) == 1
    assert "certificate" in capsys.readouterr().err


def test_an_address_without_a_scheme_reaches_a_service_over_tls(encrypted, tmp_path, capsys):
    known = ["--token-file", str(tmp_path / "token"), "--certificate-file", str(tmp_path / "server.pem")]
    assert main(["list", "-m", encrypted.address.removeprefix("https://"), *known]) == 1
    assert "no matching jobs" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["list"], ["cancel", "a-job"], ["run", "-d", "a.py"], ["logs", "a-job"]])
def test_a_command_sends_no_token_in_clear_to_another_machine(encrypted, tmp_path, capsys, command):
    name, *rest = command
    assert main([name, "-m", "http://192.0.2.77:8081", "--token-file", str(tmp_path / "token"), *rest]) == 1
    assert "--allow-plain-http" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["list"], ["run", "-d", __file__]])
def test_a_command_uses_plain_http_that_is_allowed(encrypted, tmp_path, capsys, command):
    name, *rest = command
    address = ["-m", "http://nowhere.invalid:8081", "--allow-plain-http", "--token-file", str(tmp_path / "token")]
    assert main([name, *address, *rest]) == 1
    assert "http://nowhere.invalid:8081 does not answer" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["list", "-a"], ["cancel", "nobody"]])
def test_names_and_reasons_of_jobs_cannot_steer_the_terminal_nor_fill_it(tmp_path, runtime_dir, capsys, command):
    hostile = "\x1b[2J\x1b]0;title\x07\0\r\n\x9b\u202e" + "x" * 100_000
    job = {"id": "1" * 32, "name": hostile, "state": "CREATED", "phase": "WAITING", "why": hostile, "pid": 0}
    routes = Routes()
    routes.add("GET", "/service/jobs", lambda request: {"jobs": [job]})
    serving = serve(WebSettings(port=0), routes, str(tmp_path / "token"))
    try:
        main([command[0], "-m", serving.address, "--token-file", str(tmp_path / "token"), *command[1:]])
    finally:
        serving.server.close()
    out, err = capsys.readouterr()
    assert "1" * 32 in out + err and r"\x1b[2J" in out + err and r"\x00" in out + err
    assert all(line.isprintable() for line in (out + err).split("\n"))
    assert len(out + err) < 5000
