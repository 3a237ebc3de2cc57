"""Small job graphs, snapshots and metadata for the tests of this room."""

import random

from hypothesis import strategies as st

from ekorn.checkpoint.checkpoint_directory import CheckpointDirectory
from ekorn.checkpoint.driver_process import Driver
from ekorn.checkpoint.file_names import SnapshotNames
from ekorn.checkpoint.metadata import assemble
from ekorn.graph.job_graph import Exchange, ExecutionSettings, JobGraph, Operator, OperatorId, Vertex, VertexId
from ekorn.graph.specs import Forward, MapSpec, SourceFunctionSpec
from ekorn.keygroups import key_group_range
from ekorn.state.snapshots import KeyedFiles, OperatorSnapshot, StateInfo, SubtaskSnapshot
from ekorn.state.state_files import write_state
from ekorn.storage.memory import MemoryFiles

JOB = "0123456789abcdef0123456789abcdef"


def driver(name="one", *, host="here", pid=1):
    return Driver(host=host, pid=pid, process_start=None, token=name)


def operator(uid, spec=None):
    return Operator(OperatorId(f"{uid:0>32}"), uid, uid, spec or MapSpec(None))


def vertex(number, *uids, parallelism=1, max_parallelism=128, explicit=False, source=False):
    reads = SourceFunctionSpec(None)  # type: ignore[arg-type]  # no job runs it
    operators = tuple(operator(uid, reads if source and not i else None) for i, uid in enumerate(uids))
    return Vertex(
        id=VertexId(number),
        name="->".join(uids),
        operators=operators,
        links=(),
        parallelism=parallelism,
        max_parallelism=max_parallelism,
        max_parallelism_set=explicit,
        level=number,
    )


def graph(*vertices, name="job"):
    exchanges = tuple(
        Exchange(i, before.id, 0, after.id, Forward())
        for i, (before, after) in enumerate(zip(vertices, vertices[1:]))  # noqa: B905, RUF007
    )
    return JobGraph(name, vertices, exchanges, ExecutionSettings())


def subtasks(job):
    return frozenset((int(v.id), i) for v in job.vertices for i in range(v.parallelism))


def snapshots(job, store, checkpoint_id, *, attempt="1.0", chance=None, reuse=(), inline_threshold=0, finished=()):
    """Return the snapshots of all subtasks: each a keyed file in shared/, reused files, and an exclusive file."""
    chance = chance or random.Random(checkpoint_id)
    answers = []
    for v in job.vertices:
        for index in range(v.parallelism):
            names = SnapshotNames(int(v.id), index, attempt, chance)
            parts = []
            for o in v.operators:
                kept = write_state(store, names.shared(checkpoint_id), chance.randbytes(20), inline_threshold)
                own = write_state(store, names.exclusive(checkpoint_id), chance.randbytes(10), inline_threshold)
                first, last = key_group_range(v.max_parallelism, v.parallelism, index)
                parts.append(
                    OperatorSnapshot(
                        operator_id=o.id,
                        uid=o.uid,
                        name=o.name,
                        keyed=KeyedFiles(first, last, (*reuse, kept)),
                        operator_state=own,
                        states=(StateInfo("count", "value"),),
                    )
                )
            done = (int(v.id), index) in finished
            answers.append(SubtaskSnapshot(int(v.id), index, tuple(parts), bytes_written=30, finished=done))
    return tuple(answers)


def metadata(job, store, checkpoint_id, **kwargs):
    return assemble(
        job,
        job_id=JOB,
        checkpoint_id=checkpoint_id,
        timestamp_ms=checkpoint_id * 1000,
        snapshots=snapshots(job, store, checkpoint_id, **kwargs),
    )


def opened(store=None, *, name="one", now_ms=0, take_over=False):
    """Return a job's checkpoint directory, claimed by a driver."""
    directory = CheckpointDirectory(store if store is not None else MemoryFiles(), JOB)
    directory.initialise(driver(name), now_ms, take_over=take_over)
    return directory


def all_files(store, directory=""):
    """Return the paths of all files of a store."""
    found = []
    for name in store.list(directory):
        path = f"{directory}/{name}" if directory else name
        try:
            store.size(path)
            found.append(path)
        except FileNotFoundError:
            found += all_files(store, path)
    return found


texts = st.text(max_size=8)
