"""INSTANT collected."""

from pyflink.common import Instant, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "The bridge cannot pickle an instant."


def build(env):
    return env.from_collection([0, 1500]).map(Instant.of_epoch_milli, Types.INSTANT())
