"""FLOAT nan collected."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "FLOATs are collected by reading their text as a literal, which nan is not."


def build(env):
    return env.from_collection([float("nan")]).map(lambda x: x, Types.FLOAT())
