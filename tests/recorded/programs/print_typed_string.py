"""print of strings with line breaks and other scripts."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "stdout"


def build(env):
    env.from_collection(["a", "", "two\nlines", "é你😀"], Types.STRING()).print()
