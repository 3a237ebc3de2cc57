"""Jobs on an embedded Spark session: results, errors, several jobs at once, names shown by Spark, clean-up."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

import pytest

from ekorn.common import Configuration, Types, WatermarkStrategy
from ekorn.common.accumulators import IntCounter
from ekorn.datastream import KeyedProcessFunction, MapFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.datastream.formats.avro import AvroSchema
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import JobCancelledError, JobExecutionError
from ekorn.keygroups import key_group, key_group_range
from ekorn.testing.local_run import on_local_engine
from tests.live_jobs import until
from tests.spark.nan_keys import CountOfKey, nan_key
from tests.spark.processes import listening_addresses, run_driver, slot_processes


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value % 10, count


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(parallelism)


def numbers(env: StreamExecutionEnvironment, last: int):
    return env.from_source(NumberSequenceSource(1, last), WatermarkStrategy.no_watermarks(), "numbers")


@pytest.mark.parametrize("parallelism", [1, 2, 4])
def test_the_same_job_gives_the_same_results_at_any_parallelism(parallelism: int) -> None:
    counted = numbers(environment(parallelism), 5000).key_by(lambda n: n % 10).process(Count())
    with counted.execute_and_collect("count") as results:
        found = Counter(results)
    assert found == Counter((digit, n) for digit in range(10) for n in range(1, 501))


class Where(KeyedProcessFunction):
    def open(self, runtime_context):
        self.index = runtime_context.get_index_of_this_subtask()

    def process_element(self, value, ctx):
        yield ctx.get_current_key(), self.index


@pytest.mark.parametrize("parallelism", [2, 3])
def test_the_records_of_a_key_reach_the_subtask_that_owns_its_key_group(parallelism: int) -> None:
    placed = numbers(environment(parallelism), 2000).key_by(lambda n: f"key {n % 50}").process(Where())
    with placed.execute_and_collect("where") as results:
        found = Counter(results)
    ranges = [key_group_range(128, parallelism, index) for index in range(parallelism)]
    groups = {f"key {n}": key_group(f"key {n}", 128) for n in range(50)}
    owners = {key: [i for i, (first, last) in enumerate(ranges) if first <= g <= last] for key, g in groups.items()}
    assert found == Counter({(key, owner): 40 for key, (owner,) in owners.items()})


def test_records_that_fail_become_dead_letters() -> None:
    env = environment(2)
    checked = numbers(env, 1000).map(lambda n: 1000 // (n % 100)).name("divide").on_record_error("dead-letter")
    both = checked.map(lambda n: "divided").union(
        checked.get_dead_letters().map(lambda letter: (letter.record, letter.error))
    )
    with both.execute_and_collect("dead letters") as results:
        found = Counter(results)
    dead = {(n, "ZeroDivisionError: integer division or modulo by zero"): 1 for n in range(100, 1001, 100)}
    assert found == Counter({"divided": 990} | dead)


def test_a_job_of_many_levels_runs_each_subtask_once_per_epoch() -> None:
    env = environment(2)
    seen = numbers(env, 300)
    for _ in range(4):
        seen = seen.rebalance().map(lambda n: n + 1)
    doubled = seen.union(seen, numbers(env, 10).rebalance().map(lambda n: -n))
    with doubled.execute_and_collect("deep") as results:
        found = Counter(results)
    assert found == Counter({n + 4: 2 for n in range(1, 301)}) + Counter({-n: 1 for n in range(1, 11)})


class Failing(MapFunction):
    def map(self, value):
        if value == 77:
            raise LookupError("no such thing")
        return value


def test_an_error_of_the_users_names_operator_record_and_line_and_no_jvm(capfd: pytest.CaptureFixture[str]) -> None:
    env = environment(2)
    numbers(env, 100).map(Failing()).name("look up").uid("lookup").print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute("failing")
    text = str(caught.value)
    assert "LookupError: no such thing" in text
    assert caught.value.operator_name == "look up" and caught.value.uid == "lookup"
    assert caught.value.record_preview == "77"
    assert 'raise LookupError("no such thing")' in text
    assert "py4j" not in text and "java." not in text and "org.apache.spark" not in text
    assert "org.apache.spark" not in capfd.readouterr().err


class WithoutAvro(MapFunction):
    def map(self, value):
        sys.modules["fastavro"] = None  # type: ignore[assignment]
        return AvroSchema.parse_string('"int"')


def test_a_package_that_is_missing_where_a_slot_runs_is_named_with_the_host() -> None:
    env = environment(1)
    numbers(env, 1).map(WithoutAvro()).print()
    with pytest.raises(JobExecutionError) as caught:
        env.execute("without a package")
    said = f"fastavro, which is not installed on {socket.gethostname()}, where a slot runs with "
    assert said in str(caught.value) and 'run pip install "ekorn[avro]" there' in str(caught.value)


class Pair(KeyedProcessFunction):
    def process_element(self, value, ctx):
        return value, 1


def in_words(value, before):
    return "2024-01-01"


def in_seconds(value, before):
    return 1_700_000_000 + value


def test_what_pyflink_passes_over_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    refused = "on record 1: TypeError: Pair.process_element returned the tuple (1, 1), which may mean one record or 2"
    with pytest.raises(JobExecutionError, match=re.escape(refused)):
        list(numbers(environment(1), 1).key_by(lambda n: n).process(Pair()).execute_and_collect("pairs"))

    texts = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(in_words)
    refused = "returned '2024-01-01' (str) for record 1; a timestamp is an int, in milliseconds since 1970"
    with pytest.raises(JobExecutionError, match=re.escape(refused)):
        list(numbers(environment(1), 1).assign_timestamps_and_watermarks(texts).execute_and_collect("texts"))

    with on_local_engine():
        env = environment(1).enable_checkpointing(10_000)
        endless = DataGeneratorSource(int, 10**6, rate_limiter_strategy=RateLimiterStrategy.per_second(100))
        source = env.from_source(endless, WatermarkStrategy.no_watermarks(), "endless").uid("numbers")
        source.key_by(lambda n: n % 10).process(Count()).uid("count").print()
        client = env.execute_async("before")
        until(lambda: client.get_progress().records_read > 0)  # a job that has read nothing has no state
        savepoint = client.stop_with_savepoint(False, str(tmp_path)).result()

    env = environment(1).set_restore_path(savepoint, allow_non_restored_state=True)
    seconds = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(in_seconds)
    timed = numbers(env, 1).uid("others").assign_timestamps_and_watermarks(seconds)
    renamed = timed.key_by(lambda n: n).process(Total()).uid("count")
    renamed.map(lambda pair: pair).name("forgotten")
    with caplog.at_level("WARNING"):
        assert renamed.execute_and_collect("renamed", limit=5) == [(1, 1)]
    told = [record.getMessage() for record in caplog.records if "hints" in record.name]
    assert len(told) == 3 and told[0].startswith("the results of operator 'forgotten' (written at test_jobs.py:")
    assert sum("returned 1700000001 for record 1. As milliseconds this is 1970-01-20" in text for text in told) == 1
    assert sum("holds state 'count'" in text and "Did you rename 'count' to 'total'?" in text for text in told) == 1


class Total(KeyedProcessFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value, ctx):
        yield value, 1


def test_two_jobs_at_once_and_one_after_another_share_the_session() -> None:
    outcome: dict[int, int] = {}

    def run(last: int) -> None:
        stream = numbers(environment(2), last).key_by(lambda n: n % 3).reduce(lambda a, b: a + b)
        with stream.execute_and_collect(f"sum {last}") as results:
            outcome[last] = max(results)

    threads = [threading.Thread(target=run, args=(last,)) for last in (300, 600)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert outcome == {last: max(sum(range(r, last + 1, 3)) for r in (1, 2, 3)) for last in (300, 600)}


def test_a_session_that_was_there_is_used_and_left_running() -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").getOrCreate()
    numbers(environment(1), 10).print()
    with numbers(environment(1), 10).execute_and_collect() as results:
        assert sorted(results) == list(range(1, 11))
    assert session.range(3).count() == 3


def test_spark_shows_the_jobs_name_its_epochs_and_its_operators() -> None:
    from pyspark import SparkContext

    env = environment(2)
    numbers(env, 1000).map(lambda n: n).name("polish").key_by(lambda n: n % 7).process(Count()).name("tally").print()
    client = env.execute_async("legible")
    client.get_job_execution_result().result()
    tracker = SparkContext._active_spark_context.statusTracker()
    group = f"ekorn-{str(client.get_job_id())[:8]}"
    jobs = tracker.getJobIdsForGroup(group)
    assert len(jobs) == client.get_progress().epochs
    names = [tracker.getStageInfo(s).name for j in jobs for s in tracker.getJobInfo(j).stageIds]
    assert any("polish" in n for n in names) and any("tally" in n for n in names), names


def test_cancelling_ends_a_job_that_would_never_end_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    env = environment(2)
    env.from_collection([1]).print()
    env.execute("first")  # the session of all tests has started, with folders of its own
    folder = tempfile.mkdtemp(prefix="t-")  # a short path: sockets live below it
    monkeypatch.setattr(tempfile, "tempdir", folder)
    env = environment(2)
    endless = DataGeneratorSource(lambda n: n, None, RateLimiterStrategy.per_second(1000))
    env.from_source(endless, WatermarkStrategy.no_watermarks(), "endless").key_by(lambda n: n % 5).process(
        Count()
    ).print()
    client = env.execute_async("endless")
    while client.get_progress().epochs < 2:
        assert not client.get_job_status().result().is_globally_terminal_state()
    client.cancel().result()
    with pytest.raises(JobCancelledError):
        client.get_job_execution_result().result()
    assert slot_processes() == []
    left = sorted(each.name for each in Path(folder).rglob("*") if each.is_file())
    assert left == ["driver.log", "job.json"], "only the log stays, for `ekorn logs`"


class Trace(MapFunction):
    def __init__(self, path: Path) -> None:
        self.path = path

    def map(self, value):
        self.path.write_text("ran")
        return value


def test_a_cancel_just_before_an_epoch_is_submitted_is_not_missed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from ekorn.engine.spark.driver_side.spark_levels import SparkLevels

    building = SparkLevels._tasks

    def cancelled_while_building(levels, order, attempt):
        yield from building(levels, order, attempt)
        levels.calls.cancelled.set()  # as the engine for another thread would, when all checks have passed
        levels.cancel()

    monkeypatch.setattr(SparkLevels, "_tasks", cancelled_while_building)
    env = environment(1)
    numbers(env, 10).map(Trace(tmp_path / "ran")).print()
    with pytest.raises(JobExecutionError, match="the epoch was cancelled"):
        env.execute("cancelled at once")
    assert not (tmp_path / "ran").exists()


class Seen(MapFunction):
    def open(self, runtime_context):
        self.seen = IntCounter()
        runtime_context.add_accumulator("seen", self.seen)

    def map(self, value):
        self.seen.add(1)
        return value


def test_accumulators_are_merged_over_subtasks_and_read_from_the_result() -> None:
    env = environment(2)
    numbers(env, 500).map(Seen()).filter(lambda n: False).print()
    assert env.execute("counted").get_accumulator_result("seen") == 500


def test_local_modules_of_the_program_reach_the_slots(tmp_path: Path) -> None:
    (tmp_path / "my_rules.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass Event:\n    n: int\n"
        "def twice(e):\n    return Event(e.n * 2)\n"
    )
    program = tmp_path / "program.py"
    program.write_text(
        "from my_rules import Event, twice\n"
        "from ekorn.datastream import StreamExecutionEnvironment\n"
        "class Mine:\n"
        "    def __init__(self, n): self.n = n\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.set_parallelism(2)\n"
        "s = env.from_collection([Event(1), Event(2)]).rebalance().map(twice).map(lambda e: Mine(e.n))\n"
        "print(sorted(m.n for m in s.key_by(lambda m: m.n).map(lambda m: m).execute_and_collect()))\n"
    )
    start = "import sys, runpy; sys.path.insert(0, sys.argv[1]); runpy.run_path(sys.argv[2], run_name='__main__')"
    driver = run_driver(start, str(tmp_path), str(program))
    output, _ = driver.communicate(timeout=180)
    assert driver.returncode == 0, output
    assert "[2, 4]" in output


def test_an_embedded_spark_listens_on_loopback_alone() -> None:
    driver = run_driver(
        "from ekorn.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection([1]).print()\n"
        "env.execute()\n"
        "from pyspark import SparkContext\n"
        "print('JVM', SparkContext._gateway.proc.pid, flush=True)\n"
        "input()\n",
        stdin=subprocess.PIPE,
    )
    assert driver.stdout is not None
    jvm = next(int(line.split()[1]) for line in driver.stdout if line.startswith("JVM"))
    found = listening_addresses(jvm)
    driver.communicate("\n", timeout=60)
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert found and found <= loopback


def test_a_program_without_spark_installed_is_told_what_to_install() -> None:
    driver = run_driver(
        "import sys; sys.modules['pyspark'] = None\n"
        "from ekorn.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection([1]).print()\n"
        "env.execute()\n"
    )
    output, _ = driver.communicate(timeout=60)
    assert driver.returncode != 0
    assert 'pip install "ekorn[spark]"' in output


def test_batch_mode_gives_the_last_result_of_each_key() -> None:
    from ekorn.datastream import RuntimeExecutionMode

    env = environment(2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    stream = numbers(env, 1000).key_by(lambda n: n % 4).reduce(lambda a, b: a + b)
    with stream.execute_and_collect() as results:
        assert sorted(results) == sorted(sum(range(r, 1001, 4)) for r in (1, 2, 3, 4))


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_nan_is_one_key_in_every_kind_of_composite_key(backend: str) -> None:
    configuration = Configuration().set_string("state.backend.type", backend)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    counted = numbers(env, 700).key_by(nan_key).process(CountOfKey())
    with counted.execute_and_collect("keys with NaN") as results:
        found = Counter(results)
    assert found == Counter((repr(nan_key(kind)), n) for kind in range(7) for n in range(1, 101))
