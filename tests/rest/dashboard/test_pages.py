"""The files of the page: sent without a token, with nothing from elsewhere and nothing that could run foreign text."""

import http.client
import re
from importlib.resources import files

import pytest

STATIC = {file.name: file.read_text() for file in files("ekorn.dashboard").joinpath("static").iterdir()}


def answer(port, path, method="GET"):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    link.request(method, path)
    response = link.getresponse()
    content = response.read().decode()
    link.close()
    return response, content


@pytest.mark.parametrize("name", ["", *sorted(STATIC)])
def test_every_file_is_sent_without_a_token(caller, name):
    response, content = answer(caller.port, f"/{name}")
    assert response.status == 200
    assert content == STATIC[name or "index.html"]
    kind = {"html": "text/html", "css": "text/css", "js": "text/javascript"}[(name or "index.html").rpartition(".")[2]]
    assert response.getheader("Content-Type") == f"{kind}; charset=UTF-8"
    policy = response.getheader("Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy


def test_what_is_not_a_file_of_the_page_is_not_sent(caller):
    assert answer(caller.port, "/pages.py")[0].status in (401, 404)
    assert answer(caller.port, "/..%2Fpages.py")[0].status in (401, 404)
    assert answer(caller.port, "/", "POST")[0].status in (401, 405)
    assert answer(caller.port, "/jobs/overview")[0].status == 401, "data needs the token"


@pytest.mark.parametrize("name", sorted(STATIC))
def test_a_file_names_no_other_server_and_makes_no_code_of_text(name):
    text = STATIC[name].replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//[a-z0-9-]+\.[a-z]", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=\"|style=\"", text), "the policy would refuse it"


@pytest.mark.parametrize("name", sorted(name for name in STATIC if name.endswith(".js")))
def test_what_a_module_imports_is_there(name):
    imported = re.findall(r'from "\./([a-z_]+\.js)"', STATIC[name])
    assert set(imported) <= set(STATIC)


def test_the_time_line_tells_the_states_of_a_job_in_order(caller, run):
    handle = run()
    handle.cancel()
    handle.results.wait_for_end(30)
    changes = caller.get(f"/jobs/{handle.job_id}/time-line")["changes"]
    assert [change["status"] for change in changes][:2] == ["CREATED", "RUNNING"]
    assert changes[-1]["status"] == "CANCELED"
    assert [change["timestamp"] for change in changes] == sorted(change["timestamp"] for change in changes)
