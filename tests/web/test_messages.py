"""Requests as handlers read them, responses as they are sent, and what a number may look like."""

import datetime

import pytest

from ekorn.web.http_messages import HttpError, Request, Response, not_found, whole_number


def request(body=b"", **query):
    return Request("GET", "/", query=query, body=body)


@pytest.mark.parametrize("given", ["0", "7", "007", "9" * 18])
def test_a_whole_number_is_digits(given):
    assert whole_number(given, "it") == int(given)


@pytest.mark.parametrize("given", ["", "-1", "+1", "1.0", "1e3", " 1", "1 ", "x", "\u0661", "9" * 19])
def test_what_is_no_whole_number_is_refused_with_its_name(given):
    with pytest.raises(HttpError, match=r"the size is .* not a number of at least 0") as refused:
        whole_number(given, "the size")
    assert refused.value.status == 400


def test_a_number_below_the_least_is_refused_and_the_least_is_not():
    assert whole_number("3", "it", least=3) == 3
    with pytest.raises(HttpError, match="it is '2', which is not a number of at least 3"):
        whole_number("2", "it", least=3)


def test_a_long_number_is_cut_in_the_reason():
    with pytest.raises(HttpError) as refused:
        whole_number("x" * 1_000, "it")
    assert str(refused.value).count("x") == 40


def test_a_parameter_is_given_once_or_not_at_all():
    assert request(a=["1"]).one("a") == "1"
    assert request(a=["1"]).one("b") is None
    assert request(a=[""]).one("a") == ""
    with pytest.raises(HttpError, match="'a' is given 2 times") as refused:
        request(a=["1", "2"]).one("a")
    assert refused.value.status == 400


def test_a_parameter_with_many_values_takes_commas_and_repetition():
    assert request(a=["1,2", "", "3,"]).many("a") == ["1", "2", "3"]
    assert request(a=[""]).many("a") == []
    assert request().many("a") is None


def test_a_parameter_that_is_a_number_has_its_name_in_the_reason():
    assert request(page=["2"]).number("page") == 2
    assert request(page=["0"]).number("page") == 0
    assert request().number("page") is None
    with pytest.raises(HttpError, match="the query parameter 'page' is '0', which is not a number of at least 1"):
        request(page=["0"]).number("page", least=1)


@pytest.mark.parametrize("body", [b"", b"  \n"])
def test_an_empty_body_is_an_empty_object(body):
    assert request(body).json_object() == {}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"[1]", "not a JSON object"),
        (b"1", "not a JSON object"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_body_that_is_no_object_is_the_clients_mistake(body, reason):
    with pytest.raises(HttpError, match=reason) as refused:
        request(body).json_object()
    assert refused.value.status == 400


def test_a_response_is_json_unless_it_is_bytes():
    assert Response({"a": 1}).body() == b'{"a": 1}'
    assert Response([]).body() == b"[]"
    assert Response().body() == b"{}"
    assert Response(b"as it is").body() == b"as it is"
    assert Response({"at": datetime.date(2026, 1, 2)}).body() == b'{"at": "2026-01-02"}'


def test_what_does_not_exist_is_a_404_with_its_reason():
    with pytest.raises(HttpError, match=r"^no such job$") as refused:
        not_found("no such job")
    assert refused.value.status == 404
