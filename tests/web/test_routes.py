"""Which handler a path leads to, and what is said of a path that leads nowhere."""

import pytest

from ekorn.web.http_messages import HttpError
from ekorn.web.routes import Routes


def routes(*added):
    found = Routes()
    for method, path in added:
        found.add(method, path, lambda request: {})
    return found


def path_and_parameters(found):
    return found.route.path, dict(found.parameters)


def refusal(found, method, parts):
    with pytest.raises(HttpError) as refused:
        found.find(method, parts)
    return refused.value.status, refused.value.reason


def test_a_fixed_part_wins_over_a_variable_one_and_both_over_the_rest():
    found = routes(("GET", "/jobs/*"), ("GET", "/jobs/:id"), ("GET", "/jobs/overview"))
    assert path_and_parameters(found.find("GET", ["jobs", "overview"])) == ("/jobs/overview", {})
    assert path_and_parameters(found.find("GET", ["jobs", "7"])) == ("/jobs/:id", {"id": "7"})
    assert path_and_parameters(found.find("GET", ["jobs", "7", "8"])) == ("/jobs/*", {"*": "7/8"})


def test_a_fixed_part_that_leads_nowhere_gives_way_to_a_variable_one():
    found = routes(("GET", "/jobs/overview"), ("GET", "/jobs/:id/plan"), ("GET", "/jobs/:job/edges/:edge"))
    assert path_and_parameters(found.find("GET", ["jobs", "overview", "plan"])) == (
        "/jobs/:id/plan",
        {"id": "overview"},
    )
    assert found.find("GET", ["jobs", "1", "edges", "2"]).parameters == {"job": "1", "edge": "2"}


def test_the_rest_of_a_path_keeps_what_its_parts_are():
    found = routes(("GET", "/files/:name/*"))
    assert found.find("GET", ["files", "a", "b/c", "d e"]).parameters == {"name": "a", "*": "b%2Fc/d%20e"}
    assert refusal(found, "GET", ["files", "a"]) == (404, "there is no path /files/a")


def test_the_root_is_a_path_of_its_own():
    assert path_and_parameters(routes(("GET", "/")).find("GET", [])) == ("/", {})
    assert refusal(routes(("GET", "/jobs")), "GET", []) == (404, "there is no path /")


def test_a_request_for_the_head_finds_the_route_of_get():
    found = routes(("GET", "/jobs"), ("POST", "/runs"))
    assert found.find("HEAD", ["jobs"]).route.method == "GET"
    assert refusal(found, "HEAD", ["runs"]) == (405, "the path supports POST, not HEAD")


def test_a_method_of_a_wider_path_is_found_behind_a_narrower_one_without_it():
    found = routes(("GET", "/jobs/overview"), ("POST", "/jobs/:id"))
    assert path_and_parameters(found.find("POST", ["jobs", "overview"])) == ("/jobs/:id", {"id": "overview"})
    assert refusal(found, "PATCH", ["jobs", "overview"]) == (405, "the path supports GET, POST, not PATCH")


def test_two_methods_of_a_path_name_its_parts_each_in_its_own_words():
    found = routes(("GET", "/jobs/:id"), ("DELETE", "/jobs/:jobid"))
    assert found.find("GET", ["jobs", "1"]).parameters == {"id": "1"}
    assert found.find("DELETE", ["jobs", "1"]).parameters == {"jobid": "1"}


def test_long_paths_and_methods_are_cut_in_the_reason():
    assert refusal(routes(("GET", "/a")), "X" * 1_000, ["a"])[1] == f"the path supports GET, not {'X' * 20}"
    assert refusal(routes(("GET", "/a")), "GET", ["b" * 1_000])[1] == f"there is no path /{'b' * 200}"


def test_only_get_reads_unless_a_route_says_otherwise():
    found = Routes()
    for method in ("GET", "POST", "PATCH", "DELETE"):
        found.add(method, "/a", lambda request: {})
    found.add("POST", "/look", lambda request: {}, "looks", reads_only=True)
    found.add("GET", "/stop", lambda request: {}, reads_only=False)
    assert [(route.method, route.path) for route in found if route.reads_only] == [("GET", "/a"), ("POST", "/look")]


def test_a_route_is_closed_and_small_unless_it_says_otherwise():
    found = Routes()
    found.add("POST", "/a", lambda request: {}, "does it")
    (route,) = found
    assert (route.is_public, route.to_file, route.most_body_bytes, route.summary) == (
        False,
        False,
        1_048_576,
        "does it",
    )
