"""Operations that clients ask about, and what the requirements of vertices ask for."""

from concurrent.futures import Future

import pytest

from ekorn.errors import ConfigurationError
from ekorn.rest.changing_api import wanted_parallelism
from ekorn.rest.operations import Operations, checkpoint_scope, failure_cause, in_background
from ekorn.web.http_messages import HttpError

TRIGGER = "ABCDEF0123456789" * 2


def begin(operations, trigger_id=None, scope="job", **more):
    future = Future()
    begun = operations.begin(scope, trigger_id, lambda: future, **more)
    return begun["request-id"], future


def status(operations, trigger_id, scope="job"):
    return operations.answer(scope, trigger_id)["status"]["id"]


def test_an_operation_is_in_progress_until_it_is_done():
    operations = Operations()
    trigger_id, future = begin(operations, outcome=lambda result: {"location": result})
    assert operations.answer("job", trigger_id) == {"status": {"id": "IN_PROGRESS"}, "operation": None}
    assert operations.done("job") == []
    future.set_result("/saved")
    for _ in range(2):
        assert operations.answer("job", trigger_id, when_done=True) == {
            "status": {"id": "COMPLETED"},
            "operation": {"location": "/saved"},
        }
    assert operations.done("job") == [trigger_id] and operations.done("other") == []


def test_an_operation_without_an_outcome_has_an_empty_one():
    operations = Operations()
    trigger_id, future = begin(operations)
    future.set_result(7)
    assert operations.answer("job", trigger_id)["operation"] == {}


@pytest.mark.parametrize(
    ("more", "field"), [({}, "failure-cause"), ({"failure_field": "failureCause"}, "failureCause")]
)
def test_an_operation_that_failed_has_its_cause(more, field):
    operations = Operations()
    trigger_id, future = begin(operations, **more)
    future.set_exception(ValueError("no space"))
    assert operations.answer("job", trigger_id) == {
        "status": {"id": "COMPLETED"},
        "operation": {field: {"class": "builtins.ValueError", "stack-trace": "no space", "serialized-throwable": ""}},
    }


def test_a_cause_without_words_has_its_name():
    assert failure_cause(ConfigurationError())["stack-trace"] == "ConfigurationError"
    assert failure_cause(ConfigurationError())["class"] == "ekorn.errors.ConfigurationError"


def test_a_request_that_is_sent_again_starts_nothing():
    operations, started = Operations(), []

    def start():
        started.append(1)
        return Future()

    for trigger_id in (TRIGGER, TRIGGER.lower()):
        assert operations.begin("job", trigger_id, start) == {"request-id": TRIGGER.lower()}
    assert len(started) == 1
    assert status(operations, TRIGGER) == "IN_PROGRESS"
    operations.begin("another job", TRIGGER, start)
    assert len(started) == 2


@pytest.mark.parametrize("trigger_id", ["", "a" * 31, "a" * 33, "g" * 32, 7, ["a" * 32], f"{'a' * 32}\n"])
def test_a_trigger_id_has_32_hex_digits(trigger_id):
    with pytest.raises(HttpError, match="a triggerId has 32 hex digits") as refused:
        begin(Operations(), trigger_id)
    assert refused.value.status == 400


def test_each_request_without_an_id_gets_its_own():
    operations = Operations()
    assert len({begin(operations)[0] for _ in range(10)}) == 10
    assert len(begin(operations)[0]) == 32


def test_an_operation_that_cannot_be_started_can_be_tried_again():
    operations = Operations()

    def refuse():
        raise ConfigurationError("the job has no directory")

    with pytest.raises(HttpError, match="the job has no directory") as refused:
        operations.begin("job", TRIGGER, refuse)
    assert refused.value.status == 400
    begin(operations, TRIGGER)
    assert status(operations, TRIGGER) == "IN_PROGRESS"


def test_an_unknown_operation_is_named_and_cut():
    with pytest.raises(HttpError, match=f"there is no operation '{'x' * 40}', or it is no longer kept") as refused:
        Operations().answer("job", "x" * 99)
    assert refused.value.status == 404


def test_the_oldest_of_the_done_operations_are_forgotten_and_no_other():
    operations = Operations(most=3)
    (running, _), *done = [begin(operations) for _ in range(3)]
    for _, future in done:
        future.set_result(None)
    assert operations.done("job") == [trigger_id for trigger_id, _ in done]
    fourth, _ = begin(operations)
    assert operations.done("job") == [done[1][0]]
    fifth, _ = begin(operations)
    sixth, _ = begin(operations)
    assert operations.done("job") == []
    for trigger_id in (running, fourth, fifth, sixth):
        assert status(operations, trigger_id) == "IN_PROGRESS", "what runs is remembered, however many there are"


def test_checkpoints_and_savepoints_of_a_job_have_scopes_of_their_own():
    assert checkpoint_scope("a") not in ("a", checkpoint_scope("b"))


def test_work_in_the_background_has_a_future_of_its_result():
    assert in_background(lambda: 7).result(60) == 7

    def fail():
        raise SystemExit("on purpose")

    assert isinstance(in_background(fail).exception(60), SystemExit)


PRESENT = {name: {"parallelism": {"lowerBound": 1, "upperBound": 2}} for name in ("a", "b")}


def bound(upper):
    return {"parallelism": {"lowerBound": 1, "upperBound": upper}}


@pytest.mark.parametrize(
    ("requirements", "wanted"),
    [
        ({}, None),
        ({"a": bound(2)}, None),
        ({"a": bound(3)}, 3),
        ({"a": bound(1), "b": bound(1)}, 1),
        ({"a": bound(2), "b": bound(3)}, 3),
    ],
)
def test_requirements_ask_for_another_parallelism_or_none(requirements, wanted):
    assert wanted_parallelism(PRESENT, requirements) == wanted


@pytest.mark.parametrize(
    ("requirements", "reason"),
    [
        ({"x" * 50: bound(3)}, f"the job has no vertex '{'x' * 40}'"),
        ({"a": bound(0)}, "vertex a needs a 'parallelism' with an 'upperBound' of at least 1"),
        ({"a": bound(True)}, "vertex a needs a 'parallelism'"),
        ({"a": bound("3")}, "vertex a needs a 'parallelism'"),
        ({"a": 3}, "vertex a needs a 'parallelism'"),
        ({"a": bound(3), "b": bound(4)}, "all vertices of a job share one parallelism, but the request asks for 3, 4"),
    ],
)
def test_wrong_requirements_are_refused(requirements, reason):
    with pytest.raises(HttpError, match=reason) as refused:
        wanted_parallelism(PRESENT, requirements)
    assert refused.value.status == 400
