"""Blocks of the manual that need a session of Spark, of pages whose other blocks run without one."""

from __future__ import annotations

from ekorn.datastream import StreamExecutionEnvironment
from tests.manual.blocks import DOCS, blocks_run_by


def test_a_job_runs_on_the_session_that_the_page_creates() -> None:
    names: dict[str, object] = {"StreamExecutionEnvironment": StreamExecutionEnvironment}
    page = DOCS / "guides" / "programs.md"
    (block,) = blocks_run_by(__file__, page)
    exec(compile(block.text, str(page), "exec"), names)
    env, spark = names["env"], names["spark"]
    assert isinstance(env, StreamExecutionEnvironment)
    with env.set_parallelism(1).from_collection(["acorn"]).map(str.upper).execute_and_collect() as results:
        assert list(results) == ["ACORN"]
    assert spark.range(3).count() == 3, "the job has left the session as it was"  # type: ignore[attr-defined]
