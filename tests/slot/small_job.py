"""A small job for tests of the local engine and of slots: numbers, summed by key."""

from ekorn.datastream import StreamExecutionEnvironment
from ekorn.graph.addresses import SubtaskId
from ekorn.slot_protocol.deployment import Deployment

SOURCE, SUM = SubtaskId(0, 0), SubtaskId(1, 0)  # the subtasks of the job `summing`


def graph(draw, parallelism=1, checkpoints=False):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    if checkpoints:
        env.enable_checkpointing(10)
    draw(env)
    return env.job_graph("job")


def summing(env):
    env.from_collection([1, 2, 3]).key_by(lambda v: v % 2).sum().print()


def deployment(of, attempt=0, **more):
    return Deployment("0" * 32, of, attempt, **more)
