"""The driver process of a campaign: builds the job that its argument describes, runs it, and reports its progress.

On standard output, one JSON object a line: `{"progress": ...}` many times, at the end `{"done": ...}` or
`{"failed": message}`. Everything else goes to standard error.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ekorn import errors
from ekorn.common import Configuration, RestartStrategies
from ekorn.datastream import DataStream, ExternalizedCheckpointRetention, StreamExecutionEnvironment
from ekorn.errors import EkornError, JobCancelledError, JobExecutionError, UserFunctionError
from ekorn.slot_protocol.deployment_codec import call_in_slots
from ekorn.testing.process_engine import on_process_engine
from tests.campaign.column_jobs import COLUMNS, draw_columns
from tests.campaign.faulty_storage import CONTROL, register
from tests.campaign.inputs import read_numbers
from tests.campaign.jobs import ALL_KINDS, PIPELINES, REGIONS, draw_pipeline, held_up
from tests.campaign.outputs import write_files, write_in_two_phases, write_rows, write_topics
from tests.campaign.places import ENOUGH

LEASE_MS = 1_000


@dataclass(frozen=True)
class Run:
    """One run of a driver."""

    kind: str
    records: int
    per_second: float
    output: str
    checkpoints: str  # a path or URL
    job_id: str | None = None  # shared by all drivers of a job; None: a new job that starts from `restore`
    restore: str | None = None
    parallelism: int = 2
    backend: str = "hashmap"
    incremental: bool = True
    asynchronous: bool = True
    compression: bool = False
    interval_ms: int = 40
    timeout_ms: int = 5_000
    concurrent: int = 1
    local_copies: bool = False
    retained: int = 1
    inline_bytes: int = 0
    roll: bool = True
    source: str = "generator"  # or "topic", "table"
    partitions: int = 1  # of the topic or table
    grows: bool = False  # the source has no end, and finds new partitions or rows
    sink: str = "files"  # or "two-phase", "rows", "topic"
    buckets: int = 1
    engine: str = "process"  # or "registering", "spark", "cluster"
    master: str = ""  # of Spark
    heartbeat_timeout_ms: int = 2_000
    stall_timeout_ms: int = 60_000
    execution: str = "epochs"
    unaligned: bool = False
    aligned_timeout_ms: int = 0
    form: str = COLUMNS  # of the streams of a job on columns: or "rows"
    host: str = "first-host"
    restarts: int = 40

    def text(self) -> str:
        return json.dumps(asdict(self))


def environment(run: Run) -> StreamExecutionEnvironment:
    """Draw and configure the job."""
    settings = {
        "execution.checkpointing.dir": run.checkpoints,
        "execution.checkpointing.incremental": str(run.incremental).lower(),
        "execution.checkpointing.num-retained": str(run.retained),
        "execution.checkpointing.data-inline-threshold": str(run.inline_bytes),
        "execution.checkpointing.timeout": f"{run.timeout_ms} ms",
        "execution.checkpointing.snapshot-compression": str(run.compression).lower(),
        "execution.checkpointing.max-concurrent-checkpoints": str(run.concurrent),
        "state.backend.local-recovery": str(run.local_copies).lower(),
        "state.backend.type": run.backend,
        "state.backend.async": str(run.asynchronous).lower(),
        "heartbeat.interval": "100 ms",
        "heartbeat.timeout": f"{run.heartbeat_timeout_ms} ms",
        "ekorn.epoch.stall-timeout": f"{run.stall_timeout_ms} ms",
        "ekorn.checkpoint.owner-lease": f"{LEASE_MS} ms",
        "ekorn.epoch.target-ms": "100",
        "ekorn.execution": run.execution,
        "execution.checkpointing.unaligned.enabled": str(run.unaligned).lower(),
        "execution.checkpointing.aligned-checkpoint-timeout": f"{run.aligned_timeout_ms} ms",
        **spark_settings(run),
    }
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    if run.job_id is not None:
        configuration.set_string("$internal.pipeline.job-id", run.job_id)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(run.parallelism)
    env.set_max_parallelism(12)
    env.enable_checkpointing(run.interval_ms)
    checkpoints = env.get_checkpoint_config()
    checkpoints.set_tolerable_checkpoint_failure_number(1_000)
    checkpoints.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(run.restarts, 10))
    if run.restore is not None:
        env.set_restore_path(run.restore)
    if run.unaligned:
        env.disable_operator_chaining()  # else chains differ at parallelism 1, and records to their middle are refused
    streams = drawn(env, run)
    output = Path(run.output)
    match run.sink:
        case "two-phase":
            write_in_two_phases(streams, output, buckets=run.buckets)
        case "rows":
            write_rows(streams, output)
        case "topic":
            write_topics(streams, output)
        case _:
            write_files(streams, output, roll=run.roll, buckets=run.buckets)
    return env


def drawn(env: StreamExecutionEnvironment, run: Run) -> dict[str, DataStream]:
    """Draw the job; return the streams of text lines to write, by folder."""
    if run.kind == REGIONS:
        pipelines = [draw_pipeline(read_numbers(env, run, f"numbers-{name}"), name) for name in PIPELINES]
        return {folder: stream for pipeline in pipelines for folder, stream in pipeline.items()}
    numbers = read_numbers(env, run)
    if run.kind == COLUMNS and run.form != COLUMNS:
        return draw_columns(numbers, run.form)
    return ALL_KINDS[run.kind].draw(held_up(numbers, run.kind) if run.unaligned else numbers)


def spark_settings(run: Run) -> dict[str, str]:
    """Return the settings of the driver's Spark session. Slots on a cluster have their faults from their executors."""
    match run.engine:
        case "spark":
            return {"spark.master": run.master}
        case "cluster":
            passed_on = ("EKORN_FAULT", "EKORN_FAULT_DIR", CONTROL, "PYTHONPATH")
            return {
                "spark.master": run.master,
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.ui.enabled": "false",
                "spark.cores.max": "2",  # one on each worker, and as many for a second driver
                "spark.executor.cores": "1",
                "spark.executor.memory": "512m",
                **{f"spark.executorEnv.{name}": value for name in passed_on if (value := os.environ.get(name))},
            }
        case _:
            return {}


def kinds_of(error: BaseException | None) -> list[str]:
    """Return the names of the classes of an error, of its bases, and of the errors that caused it."""
    kinds: list[str] = []
    while error is not None:
        kinds += [kind.__name__ for kind in type(error).__mro__]
        if isinstance(error, UserFunctionError):  # holds the class of what a slot raised as text
            original = getattr(errors, error.original_type, None)
            kinds += [kind.__name__ for kind in original.__mro__] if original is not None else [error.original_type]
        error = error.cause if isinstance(error, JobExecutionError) else error.__cause__
    return kinds


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def watch(client: Any, enough: Path) -> None:
    """Report the job's progress every few milliseconds until the process ends; cancel the job when it is told to."""
    cancelled = False
    while True:
        if not cancelled and enough.exists():
            client.cancel()
            cancelled = True
        p = client.get_progress()
        say(
            progress={
                "read": p.records_read,
                "checkpoints": p.checkpoints_completed,
                "failed": p.checkpoints_failed,
                "restarts": p.restarts,
                "status": p.status.name,
                "slots": p.slot_pids,
            }
        )
        time.sleep(0.02)


def main() -> None:
    run = Run(**json.loads(sys.argv[1]))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # a driver that hangs can be asked for its stacks
    socket.gethostname = lambda: run.host
    engine = (
        contextlib.nullcontext()
        if run.engine in ("spark", "cluster")
        else on_process_engine(registering=run.engine == "registering", continuous=run.execution == "continuous")
    )
    register()
    call_in_slots(register)
    with engine:
        try:
            client = environment(run).execute_async("campaign")
            enough = Path(run.output).parent / ENOUGH
            threading.Thread(target=watch, args=(client, enough), daemon=True).start()
            with contextlib.suppress(JobCancelledError):  # nobody cancels a job whose output is not complete
                client.get_job_execution_result().result()
        except EkornError as error:
            say(failed=f"{type(error).__name__}: {error}", kinds=kinds_of(error))
            sys.exit(3)
        p = client.get_progress()
        say(done={"restarts": p.restarts, "checkpoints": p.checkpoints_completed, "failed": p.checkpoints_failed})


if __name__ == "__main__":
    main()
