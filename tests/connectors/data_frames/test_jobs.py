"""Whole jobs between a folder of batches and a folder of rows, on the local engine."""

from ekorn.common import RestartStrategies
from ekorn.connectors.data_frames.commit_log import CommitLog
from ekorn.connectors.data_frames.row_files_sink import RowFilesSink
from ekorn.datastream import MapFunction, StreamExecutionEnvironment
from ekorn.storage.file_store import open_files
from ekorn.testing import on_local_engine
from tests.connectors.data_frames.row_files import ROW_TYPE, Query, rows, rows_of


class FailsOnce(MapFunction):
    """Fails at a record, once in its life."""

    def __init__(self, mark, number):
        self._mark = mark
        self._number = number

    def map(self, value):
        if value.id == self._number and not self._mark.exists():
            self._mark.touch()
            raise RuntimeError("as planned")
        return value


def run(query, out, mark, fails_at):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.enable_checkpointing(10).set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    stream = env.from_source(query.source(bounded=True), None, "batches").map(FailsOnce(mark, fails_at))
    stream.sink_to(RowFilesSink(str(out), ROW_TYPE))
    with on_local_engine():
        env.execute()


def test_rows_pass_exactly_once_although_the_job_fails_and_the_next_job_begins_behind_them(tmp_path):
    query, out = Query(tmp_path / "in"), tmp_path / "out"
    query.batches.begin()
    for number in range(3):
        query.batch(number, rows(number * 100, 50), rows(number * 100 + 50, 50))
    query.batches.end("clicks", None)
    run(query, out, tmp_path / "failed-1", 142)
    assert (tmp_path / "failed-1").exists()
    query.batches.prune()
    assert list((tmp_path / "in" / "batches").iterdir()) == []

    again = Query(tmp_path / "in")
    again.batches.begin()
    again.batch(3, rows(300, 50), rows(350, 50))
    again.batches.end("clicks", None)
    run(again, out, tmp_path / "failed-2", 342)
    files = CommitLog(open_files(str(out))).all_files()
    assert sorted(row.id for row in rows_of(out, files)) == list(range(400))
