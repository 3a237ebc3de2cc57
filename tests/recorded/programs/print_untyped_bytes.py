"""print of untyped bytes."""

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "stdout"
QUIRK = "Bytes are handed on as the text, which they are not."


def build(env):
    env.from_collection([b"bytes"]).map(lambda x: x).print()
