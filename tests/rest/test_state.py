"""The state of a running job over the REST API: one key and many, typed, live and of a checkpoint; and refusals."""

from __future__ import annotations

import dataclasses
from datetime import date
from decimal import Decimal

import pytest

from ekorn.common import Row, Types
from ekorn.config.settings.web_settings import WebSettings
from ekorn.errors import QueryRefused
from ekorn.rest.key_text import key_of_json, key_of_text
from ekorn.rest.state_answers import as_json
from tests.rest.conftest import Caller


def test_the_states_of_a_job_are_listed_with_the_type_of_their_keys(caller, serve):
    handle = serve()
    found = caller.get(f"/jobs/{handle.job_id}/state")
    assert found["enabled"] is True
    assert {(each["name"], each["kind"]) for each in found["states"]} == {
        ("count", "value"),
        ("recent", "list"),
        ("parity", "map"),
    }
    assert {(each["operator"], each["keyType"]) for each in found["states"]} == {("keep", "Long")}


def test_many_keys_of_every_kind_are_looked_up_in_one_request(caller, serve):
    at = f"/jobs/{serve().job_id}/state"
    found = caller.get(f"{at}/count?key=3&key=8&key=77")
    assert (found["name"], found["kind"], found["consistency"]) == ("count", "value", "live")
    assert found["entries"] == [
        {"key": "3", "found": True, "value": 3, "text": "3"},
        {"key": "8", "found": True, "value": 8, "text": "8"},
        {"key": "77", "found": False, "value": None, "text": None},
    ]
    (recent,) = caller.get(f"{at}/recent?key=7")["entries"]
    assert (recent["value"], recent["text"]) == ([7, 7], "[7, 7]")
    (parity,) = caller.get(f"{at}/parity?key=7")["entries"]
    assert parity["value"] == {"odd": 7}
    status, answer = caller.ask("POST", f"{at}/count", {"keys": [*range(10), "4"], "consistency": "checkpoint"})
    assert status == 200 and [each["value"] for each in answer["entries"]] == [*range(10), 4]


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("count?key=77", None, 404, "queryable state 'count' has no value for key 77"),
        ("sum?key=1", None, 404, "no queryable state 'sum'; it has 'count', 'parity', 'recent'"),
        ("count?key=tea", None, 400, "'tea' is not a key of type Long"),
        ("count?key=9223372036854775808", None, 400, "outside the range of Long"),
        ("count", None, 400, "a query takes 1 to 10000 keys, not 0"),
        ("count?key=1&consistency=soon", None, 400, "'live' or 'checkpoint', not 'soon'"),
        ("count", {"keys": "1"}, 400, "'keys' is not a list"),
        ("count", {"keys": [[1]]}, 400, "is not a key of type Long"),
        ("count", {"keys": [True]}, 400, "True is not a key of type Long"),
        ("count", {"keys": [1], "consistency": ["live"]}, 400, "'live' or 'checkpoint'"),
    ],
)
def test_a_wrong_question_is_refused_with_a_reason(caller, serve, *, path, body, status, reason):
    found, answer = caller.ask("GET" if body is None else "POST", f"/jobs/{serve().job_id}/state/{path}", body)
    assert found == status and reason in answer["errors"][0]


def test_a_job_that_serves_no_state_says_why(caller, serve):
    handle = serve(queryable_state__enable="false")
    assert caller.get(f"/jobs/{handle.job_id}/state") == {"enabled": False, "states": []}
    status, answer = caller.ask("GET", f"/jobs/{handle.job_id}/state/count?key=1")
    assert status == 409 and "does not run with queryable-state.enable: true" in answer["errors"][0]
    assert caller.ask("GET", "/jobs/nobody/state/count?key=1")[0] == 404


def test_an_ended_job_serves_no_state_and_keeps_nothing_alive(caller, serve):
    handle = serve()
    handle.cancel()
    assert handle.results.wait_for_end(30) and handle.view.state_reader is None
    status, answer = caller.ask("GET", f"/jobs/{handle.job_id}/state/count?key=1")
    assert status == 409 and "is CANCELED" in answer["errors"][0]
    assert caller.get(f"/jobs/{handle.job_id}/state")["states"] == []


def test_state_needs_the_token_and_a_read_only_server_shows_it(web, caller, serve):
    handle = serve()
    path = f"/jobs/{handle.job_id}/state/count"
    stranger = Caller(caller.port)
    assert stranger.ask("GET", f"{path}?key=1")[0] == 401
    assert stranger.ask("POST", path, {"keys": [1]})[0] == 401
    web.close()
    reading = Caller(web.open(WebSettings(port=0, read_only=True, needs_token=False)).server.port)
    assert reading.ask("POST", path, {"keys": [1]})[0] == 200


def test_keys_without_a_declared_type_are_literals_or_text(caller, serve):
    handle = serve(key_type=None, selector=lambda n: ("n", n) if n < 5 else str(n))
    at = f"/jobs/{handle.job_id}/state/count"
    assert [each["value"] for each in caller.get(f"{at}?key=('n',3)&key='7'")["entries"]] == [3, 7]
    assert caller.ask("GET", f"{at}?key=7")[0] == 404, "the number 7 is another key than the text '7'"
    assert caller.ask("POST", at, {"keys": [["n", 3], "7"]})[1]["entries"][0]["value"] == 3


@pytest.mark.parametrize(
    ("key_type", "selector"),
    [
        (Types.ROW([Types.STRING(), Types.LONG()]), lambda n: Row("n", n)),
        (Types.ROW_NAMED(["kind", "number"], [Types.STRING(), Types.LONG()]), lambda n: Row(kind="n", number=n)),
        (Types.TUPLE([Types.STRING(), Types.LONG()]), lambda n: ("n", n)),
    ],
)
def test_a_composite_key_is_found_by_its_fields(caller, serve, key_type, selector):
    handle = serve(key_type=key_type, selector=selector)
    assert caller.get(f"/jobs/{handle.job_id}/state/count?key=('n',4)")["entries"][0]["value"] == 4


@pytest.mark.parametrize(
    ("text", "key_type", "key"),
    [
        ("7", Types.STRING(), "7"),
        ("a,b", Types.STRING(), "a,b"),
        ("-7", Types.INT(), -7),
        ("7", Types.DOUBLE(), 7.0),
        ("TRUE", Types.BOOLEAN(), True),
        ("0.10", Types.BIG_DEC(), Decimal("0.10")),
        ("2024-02-29", Types.SQL_DATE(), date(2024, 2, 29)),
        ("('a', '2024-02-29')", Types.TUPLE([Types.STRING(), Types.SQL_DATE()]), ("a", date(2024, 2, 29))),
        ("('a', 1)", Types.ROW([Types.STRING(), Types.LONG()]), Row(f0="a", f1=1)),
        ("('a', 1)", None, ("a", 1)),
        ("tea", None, "tea"),
        ("-" * 5000 + "1", None, "-" * 5000 + "1"),
    ],
)
def test_a_text_is_read_by_the_declared_type(text, key_type, key):
    found = key_of_text(text, key_type)
    assert found == key and type(found) is type(key)


@pytest.mark.parametrize(
    ("text", "key_type"),
    [
        ("7.5", Types.LONG()),
        ("1_000", Types.LONG()),
        ("40000", Types.SHORT()),
        ("yes", Types.BOOLEAN()),
        ("one", Types.DOUBLE()),
        ("NaN", Types.BIG_DEC()),
        ("2024-02-30", Types.SQL_DATE()),
        ("('a',)", Types.TUPLE([Types.STRING(), Types.LONG()])),
        ("('a', 'b')", Types.TUPLE([Types.STRING(), Types.LONG()])),
        ("[1]", Types.LIST(Types.LONG())),
        ("x" * 20_000, Types.STRING()),
    ],
)
def test_a_text_that_is_no_key_of_its_type_is_refused(text, key_type):
    with pytest.raises(QueryRefused):
        key_of_text(text, key_type)


def test_a_value_of_json_is_no_key_of_another_type():
    assert key_of_json("7", Types.LONG()) == 7
    for wrong, key_type in ((7, Types.STRING()), (7.5, Types.LONG()), (None, Types.LONG()), ({}, Types.LONG())):
        with pytest.raises(QueryRefused):
            key_of_json(wrong, key_type)


@dataclasses.dataclass
class Point:
    x: int
    y: float


class Broken:
    def __repr__(self):
        raise RuntimeError("no repr")


def test_values_of_users_become_json():
    assert as_json(Point(1, float("inf"))) == {"x": 1, "y": "inf"}
    assert as_json(Row(a=1, b=b"\0")) == {"a": 1, "b": "AA=="}
    assert as_json(Row(1, date(2024, 1, 2))) == [1, "2024-01-02"]
    assert as_json(Decimal("1.50")) == "Decimal('1.50')"
    assert as_json([16**5000]) == [f"0x1{'0' * 5000}"], "Python writes no decimal number of so many digits"
    assert as_json(Broken()) == "<Broken whose repr raised RuntimeError>"
    nested: list = []
    for _ in range(200):
        nested = [nested]
    assert isinstance(as_json(nested), list)
