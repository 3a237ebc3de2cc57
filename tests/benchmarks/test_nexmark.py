"""Nexmark's queries in rows and in columns give the answers of SQLite over the same files."""

import json
from collections import Counter

import pyarrow.parquet as pq
import pytest
from benchmarks.nexmark import column_queries, row_queries
from benchmarks.nexmark.answers import Answers, last_of_keys, normal
from benchmarks.nexmark.events import KINDS, batches, write
from benchmarks.nexmark.streams import Events

from ekorn.common import Time
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.testing.local_run import on_local_engine

EVENTS, RATE = 3_000, 50  # a minute, so windows end, and some sessions before the last bid
FORMS = {"rows": row_queries.QUERIES, "columns": column_queries.QUERIES}
IN_BOTH_FORMS = pytest.mark.parametrize("form", FORMS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("nexmark")
    write(made, EVENTS, rate=RATE)
    return made


@pytest.fixture(scope="module")
def answers(folder):
    return Answers(folder)


def results(folder, query, form, **more):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    stream = FORMS[form][query](Events(env, folder, form, **more))
    with on_local_engine(), stream.execute_and_collect() as rows:
        return list(normal(rows))


@IN_BOTH_FORMS
@pytest.mark.parametrize("query", [query for query in row_queries.QUERIES if query != "q12"])
def test_the_answer_of_a_query_is_that_of_sqlite(folder, answers, query, form):
    expected = answers.of(query)
    assert expected, "a query without an answer shows nothing"
    assert last_of_keys(query, results(folder, query, form)) == expected


@IN_BOTH_FORMS
def test_windows_of_processing_time_that_have_ended_count_each_bid_once(folder, answers, form):
    counted = Counter()
    while not counted:  # no window ends in a run of less than a millisecond
        for bidder, start, end, bids in results(folder, "q12", form, processing_window=Time.milliseconds(1)):
            assert end - start == 1
            counted[bidder] += bids
    assert not counted - Counter(dict(answers.of("q12").keys())), "a bid counts in two windows"


def test_both_forms_have_the_same_queries():
    assert list(row_queries.QUERIES) == list(column_queries.QUERIES)


def test_the_generator_keeps_to_its_proportions_and_gives_the_same_events_again():
    made = batches(3 * 10_000, 10_000, 10_000)
    assert {kind: made[kind].num_rows for kind in KINDS} == {"person": 200, "auction": 600, "bid": 9_200}
    assert made == batches(3 * 10_000, 10_000, 10_000)
    auctions = Counter(made["bid"].column("auction").to_pylist())
    hot = sum(count for _, count in auctions.most_common(7))  # 600 new auctions have six or seven hot ones
    assert 0.49 < hot / 9_200 < 0.56


def test_json_lines_have_the_events_of_the_parquet_files(folder, tmp_path):
    write(tmp_path, EVENTS, rate=RATE, as_json=True)
    for kind in KINDS:
        for number in range(2):
            lines = (tmp_path / kind / f"part-{number}.jsonl").read_text(encoding="utf-8").splitlines()
            rows = pq.read_table(folder / kind / f"part-{number}.parquet").to_pylist()
            assert len(lines) == len(rows)
            for line, row in zip(lines, rows, strict=True):
                times = {
                    name: f"{row[name].isoformat(timespec='milliseconds')}"
                    for name in ("dateTime", "expires")
                    if name in row
                }
                assert json.loads(line) == row | times
