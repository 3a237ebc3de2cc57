"""Clients read the state of running jobs: every kind of state, both backends, and clear refusals."""

import pytest

from ekorn.common import Time, Types
from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.datastream.functions import KeyedProcessFunction
from ekorn.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from ekorn.errors import (
    ConfigurationError,
    InvalidProgramError,
    JobExecutionError,
    QueryableNameTwice,
    QueryError,
    QueryRefused,
    StateNotServed,
    UnknownJob,
    UnknownKey,
    UnknownQueryableState,
    UnsupportedOperationError,
)
from ekorn.queryable import QueryableStateClient
from ekorn.testing import on_local_engine
from ekorn.testing.scripted import Crash, run_scripted
from tests.queryable.programs import (
    DAY,
    Average,
    EveryKind,
    asked_after,
    content,
    descriptors,
    environment,
    expected,
    numbers,
)

BACKENDS = ["hashmap", "rocksdb"]


def every_kind(env, count=40):
    return numbers(env, count).key_by(lambda n: n % 5, Types.LONG()).process(EveryKind()).uid("kinds")


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("turns", [None, 7], ids=["epochs", "continuous"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_kind_of_state_is_read_between_two_epochs(backend, turns, parallelism, tmp_path):
    def ask(client, job):
        return {
            (name, key): content(client.get_kv_state(job, name, key, Types.LONG(), descriptor).result(60))
            for name, descriptor in descriptors().items()
            for key in range(5)
        }

    stream = every_kind(environment(parallelism, tmp_path), count=400)
    found = asked_after(6, stream, ask, state_backend=backend, turns=turns)
    for key in range(5):
        mine = found[("list", key)]
        assert mine == [n for n in range(400) if n % 5 == key][: len(mine)] and len(mine) >= 4
        assert {name: found[(name, key)] for name in descriptors()} == expected(mine)


@pytest.mark.parametrize("cache_bytes", [1 << 20, 2000], ids=["in memory", "evicted"])
def test_changes_that_rocksdb_has_not_been_given_yet_are_read(cache_bytes):
    """Without checkpoints, the dictionaries before RocksDB are flushed only when they are full."""

    def ask(client, job):
        return {
            name: content(client.get_kv_state(job, name, 3, Types.LONG(), descriptor).result(60))
            for name, descriptor in descriptors().items()
        }

    rocksdb = RocksDBSettings(cache_bytes=cache_bytes)
    found = asked_after(6, every_kind(environment()), ask, state_backend="rocksdb", rocksdb=rocksdb)
    assert found == expected([3, 8, 13, 18, 23])


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_keys_are_asked_in_one_call(backend):
    def ask(client, job):
        return client.get_kv_states(job, "value", [*range(7)], Types.LONG(), descriptors()["value"]).result(60)

    found = asked_after(10, every_kind(environment(2)), ask, state_backend=backend)
    assert [None if state is None else state.value() % 5 for state in found] == [0, 1, 2, 3, 4, None, None]
    assert (
        asked_after(
            1,
            every_kind(environment()),
            lambda client, job: client.get_kv_states(job, "value", [], None, descriptors()["value"]).result(60),
        )
        == []
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_larger_than_an_answer_are_refused_by_the_slot_with_what_to_do(backend):
    env = environment()
    keyed = numbers(env).map(lambda n: (n % 5, "x" * 200_000)).key_by(lambda pair: pair[0], Types.LONG())
    descriptor = keyed.as_queryable_state("records").get_state_descriptor()

    def ask(client, job):
        def asked(keys):
            return client.get_kv_states(job, "records", keys, Types.LONG(), descriptor).result(60)

        with pytest.raises(
            QueryRefused, match=r"the values of 3\d\d of the keys take \d+ bytes; .* ask for fewer keys"
        ):
            asked([1, 2] * 500)
        return [state.value()[0] for state in asked([1, 2])]

    assert asked_after(6, env, ask, state_backend=backend) == [1, 2]


def test_the_records_of_a_keyed_stream_are_queryable():
    def draw(descriptor=None):
        env = environment()
        keyed = numbers(env).key_by(lambda n: n % 2, Types.LONG())
        sink = keyed.as_queryable_state("records", descriptor)
        assert sink.get_queryable_state_name() == "records" and sink.get_key_type() == Types.LONG()
        return env, sink.get_state_descriptor()

    def read(env, descriptor):
        def ask(client, job):
            return content(client.get_kv_state(job, "records", 1, Types.LONG(), descriptor).result(60))

        return asked_after(3, env, ask)

    assert read(*draw()) == 11
    assert read(*draw(ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG()))) == 1 + 3 + 5 + 7 + 9 + 11
    with pytest.raises(TypeError, match="value, reducing or folding state"):
        draw(ListStateDescriptor("list"))


@pytest.mark.parametrize(
    ("question", "error", "words"),
    [
        (("job", "value", 1), None, ""),
        (("job", "value", 99), UnknownKey, "no value for key 99"),
        (("job", "values", 1), UnknownQueryableState, "'values'; it has 'aggregating', 'folding', 'list'"),
        (("other", "value", 1), UnknownJob, "no job '0{32}'"),
        (("job", "value", "1"), QueryRefused, "does not fit its type"),
        (("job", "list", 1), QueryRefused, "list state, and the descriptor is one of value state"),
    ],
)
def test_what_cannot_be_answered_is_said_clearly(question, error, words):
    def ask(client, job):
        which, name, key = question
        job = job if which == "job" else "0" * 32
        return client.get_kv_state(job, name, key, Types.LONG(), descriptors()["value"]).result(60).value()

    stream = every_kind(environment())
    if error is None:
        assert asked_after(10, stream, ask) == 36
    else:
        with pytest.raises(error, match=words):
            asked_after(10, stream, ask)


class Panic(BaseException):
    """Not an Exception, as the panics of RocksDB."""


class Panics(Average):
    def get_result(self, accumulator):
        raise Panic("no result")


class AddToPanicking(KeyedProcessFunction):
    def open(self, runtime_context):
        descriptor = AggregatingStateDescriptor("a", Panics())
        descriptor.set_queryable("panicking")
        self.state = runtime_context.get_aggregating_state(descriptor)

    def process_element(self, value, ctx):
        self.state.add(value)
        return iter(())


@pytest.mark.parametrize("turns", [None, 3])
def test_a_query_that_panics_is_refused_and_the_job_goes_on(turns):
    stream = numbers(environment()).key_by(lambda n: n % 5, Types.LONG()).process(AddToPanicking())

    def ask(client, job):
        return client.get_kv_state(job, "panicking", 1, None, AggregatingStateDescriptor("a", Panics())).result(60)

    with pytest.raises(StateNotServed, match="no result"):
        asked_after(3, stream, ask, turns=turns)


def test_a_queried_state_cannot_be_changed():
    def ask(client, job):
        return [client.get_kv_state(job, name, 1, None, d).result(60) for name, d in descriptors().items()]

    for state in asked_after(10, every_kind(environment()), ask):
        for call, arguments in (("clear", ()), ("add", (1,)), ("update", (1,)), ("put", ("a", 1)), ("remove", ("a",))):
            if hasattr(state, call):
                with pytest.raises(UnsupportedOperationError, match="only the job can change its state"):
                    getattr(state, call)(*arguments)


class Expires(KeyedProcessFunction):
    """Writes a value that expires after one epoch, and counts how often it is gone."""

    def __init__(self, visible):
        builder = StateTtlConfig.new_builder(Time.milliseconds(15)).disable_cleanup_in_background()
        builder = builder.return_expired_if_not_cleaned_up() if visible else builder.never_return_expired()
        self.descriptor = ValueStateDescriptor("short", Types.LONG())
        self.descriptor.enable_time_to_live(builder.update_ttl_on_read_and_write().build())
        self.descriptor.set_queryable("short")

    def open(self, runtime_context):
        self.state = runtime_context.get_state(self.descriptor)

    def process_element(self, value, ctx):
        if value < 4:
            self.state.update(value)
        elif value >= 20:
            yield self.state.value()


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_expired_value_is_not_shown_and_a_query_does_not_renew_it(backend, tmp_path):
    def draw(visible):
        return numbers(environment(1, tmp_path / str(visible))).key_by(lambda n: n % 4).process(Expires(visible))

    def ask(client, job):
        return client.get_kv_state(job, "short", 1, None, ValueStateDescriptor("s")).result(60).value()

    assert asked_after(1, draw(False), ask, state_backend=backend) == 1
    with pytest.raises(UnknownKey):
        asked_after(4, draw(False), ask, state_backend=backend)
    assert asked_after(4, draw(True), ask, state_backend=backend) == 1


# ------------------------------------------------------------------------------------------------------ names


class Named(KeyedProcessFunction):
    """Makes its descriptors in `open`, where the program does not show them."""

    def __init__(self, *names):
        self.names = names

    def open(self, runtime_context):
        for number, name in enumerate(self.names):
            descriptor = ValueStateDescriptor(f"state {number}")
            descriptor.set_queryable(name)
            self.state = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx):
        self.state.update(value)
        return iter(())


def test_two_states_of_one_name_are_refused_at_execute():
    env = environment()
    keyed = numbers(env).key_by(lambda n: n % 2)
    keyed.as_queryable_state("twice")
    keyed.as_queryable_state("twice")
    with on_local_engine(), pytest.raises(QueryableNameTwice, match="queryable as 'twice'"):
        env.execute()
    assert issubclass(QueryableNameTwice, InvalidProgramError)


@pytest.mark.parametrize("apart", [False, True], ids=["in one slot", "in different slots"])
def test_two_states_of_one_name_that_functions_declare_are_refused_before_the_first_record(apart):
    env = environment()
    seen = []
    stream = numbers(env).map(lambda n: seen.append(n) or n)
    first = stream.key_by(lambda n: n % 2).process(Named("twice"))
    second = stream.key_by(lambda n: n % 3).process(Named("other", "twice"))
    if apart:
        first.slot_sharing_group("elsewhere")
    with pytest.raises(JobExecutionError, match="queryable as 'twice'") as failed:
        run_scripted(first.union(second))
    assert "restart" not in str(failed.value), "another attempt would fail the same way"


def test_two_states_of_one_function_are_refused_too():
    with pytest.raises(JobExecutionError, match="state 'state 0' and state 'state 1'"):
        run_scripted(numbers(environment()).key_by(lambda n: n % 2).process(Named("same", "same")))


def test_a_descriptor_is_made_queryable_once():
    descriptor = MapStateDescriptor("m")
    assert not descriptor.is_queryable() and descriptor.get_queryable_state_name() is None
    descriptor.set_queryable("name")
    assert descriptor.is_queryable() and descriptor.get_queryable_state_name() == "name"
    with pytest.raises(ValueError, match="already queryable, as 'name'"):
        descriptor.set_queryable("other")
    with pytest.raises(ValueError, match="a string that is not empty"):
        ValueStateDescriptor("v").set_queryable("")


# --------------------------------------------------------------------------------------- restarts, ends and rescaling


@pytest.mark.parametrize("backend", BACKENDS)
def test_after_a_crash_a_query_sees_the_restored_state(backend, tmp_path):
    def ask(client, job):
        return client.get_kv_state(job, "list", 1, Types.LONG(), descriptors()["list"]).result(60)

    stream = every_kind(environment(2, tmp_path))
    found = asked_after(7, stream, ask, state_backend=backend, crashes=[Crash("in-epoch", 14)])
    mine = list(found.get())
    assert mine == [n for n in range(40) if n % 5 == 1][: len(mine)]


def test_a_job_that_has_ended_is_refused():
    run = run_scripted(every_kind(environment()))
    at = run.handle.queries_at
    assert at is not None
    with QueryableStateClient(at.host, at.port, at.token) as client:
        future = client.get_kv_state(run.handle.job_id, "value", 1, None, descriptors()["value"])
        with pytest.raises(StateNotServed, match="does not answer"):
            future.result(20)


def test_queries_are_not_answered_unless_they_are_enabled():
    plain = run_scripted(every_kind(environment(**{"queryable-state__enable": "false"})))
    assert plain.handle.queries_at is None


# ---------------------------------------------------------------------------------------------------- who may ask


def test_a_wrong_token_is_refused_and_a_client_that_is_shut_down_too():
    def ask(client, job):
        wrong = QueryableStateClient("127.0.0.1", client.port, "x" * 32)
        with wrong, pytest.raises(QueryError, match="does not accept the token"):
            wrong.get_kv_state(job, "value", 1, None, descriptors()["value"]).result(60)
        with pytest.raises(QueryError, match="shut down"):
            wrong.get_kv_state(job, "value", 1, None, descriptors()["value"])
        own = QueryableStateClient("127.0.0.1", client.port)  # the token of this user
        with own:
            return content(own.get_kv_state(job, "value", 1, None, descriptors()["value"]).result(60))

    assert asked_after(10, every_kind(environment()), ask) == 36


def test_a_token_file_must_be_private_and_long(tmp_path):
    token = tmp_path / "token"
    token.write_text("short")
    token.chmod(0o600)
    with pytest.raises(ConfigurationError, match="shorter than 16"):
        run_scripted(every_kind(environment(**{"ekorn__queryable-state__token-file": str(token)})))
    token.write_text("t" * 20)
    token.chmod(0o644)
    with pytest.raises(ConfigurationError, match="open to other users"):
        run_scripted(every_kind(environment(**{"ekorn__queryable-state__token-file": str(token)})))
    token.chmod(0o600)
    run = run_scripted(every_kind(environment(**{"ekorn__queryable-state__token-file": str(token)})))
    at = run.handle.queries_at
    assert at is not None and at.token == "t" * 20


def test_a_port_that_is_taken_is_refused_with_advice():
    def ask(client, job):
        taken = environment(**{"queryable-state__proxy__ports": str(client.port)})
        with pytest.raises(ConfigurationError, match="to a range such as"):
            run_scripted(every_kind(taken))
        return True

    assert asked_after(2, every_kind(environment()), ask)


def test_two_jobs_of_one_driver_share_a_port():
    def ask(client, job):
        def ask_inner(other_client, other_job):
            assert other_client.port == client.port
            one = client.get_kv_state(other_job, "value", 1, None, descriptors()["value"]).result(60).value()
            two = other_client.get_kv_state(job, "value", 1, None, descriptors()["value"]).result(60).value()
            return one, two

        return asked_after(6, every_kind(environment()), ask_inner)

    assert asked_after(10, every_kind(environment()), ask) == (21, 36)


def test_the_day_of_the_expiring_states_is_long():
    assert DAY.get_ttl().to_milliseconds() == 86_400_000


# --------------------------------------------------------------------------------- the last completed checkpoint


@pytest.mark.parametrize("storage", ["files", "memory"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_values_of_the_last_checkpoint_are_read_beside_the_live_ones(backend, storage, tmp_path):
    def ask(client, job):
        found = {}
        for consistency in ("live", "checkpoint"):
            for name, descriptor in descriptors().items():
                future = client.get_kv_states(job, name, range(6), Types.LONG(), descriptor, consistency=consistency)
                found[consistency, name] = [None if each is None else content(each) for each in future.result(60)]
        return found

    env = environment(2, tmp_path if storage == "files" else None)
    if storage == "memory":
        env.enable_checkpointing(10)
    script = {"checkpoints": [True, True, True, False, False, False]}
    found = asked_after(6, every_kind(env), ask, state_backend=backend, script=script)
    for key in range(5):
        live, saved = found["live", "list"][key], found["checkpoint", "list"][key]
        assert saved == live[: len(saved)] and len(saved) < len(live), "the checkpoint is older"
        for consistency, mine in (("live", live), ("checkpoint", saved)):
            assert {name: found[consistency, name][key] for name in descriptors()} == expected(mine)
    assert found["checkpoint", "value"][5] is None


def test_without_a_completed_checkpoint_a_query_of_it_is_refused():
    def ask(client, job):
        return client.get_kv_state(job, "value", 1, None, descriptors()["value"], consistency="checkpoint").result(60)

    with pytest.raises(StateNotServed, match="has not completed a checkpoint"):
        asked_after(3, every_kind(environment()), ask)
    with pytest.raises(ValueError, match="'live' or 'checkpoint'"):
        asked_after(
            3,
            every_kind(environment()),
            lambda client, job: client.get_kv_state(job, "value", 1, None, descriptors()["value"], consistency="exact"),
        )
