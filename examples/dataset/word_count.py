"""The words of a text with how often they occur, most frequent first.

    python examples/dataset/word_count.py [FILE]

Each subtask combines the counts of its own words before they are shuffled.
"""

from __future__ import annotations

import sys

from ekorn.dataset import DataSet, ExecutionEnvironment, Order

TEXT = """\
To be, or not to be, that is the question:
Whether 'tis nobler in the mind to suffer
The slings and arrows of outrageous fortune,
Or to take arms against a sea of troubles
And by opposing end them.
"""


def counted(lines: DataSet) -> DataSet:
    """Return each word of some lines with its count, in one partition, most frequent first."""
    words = lines.flat_map(lambda line: [word.strip(".,:;'").lower() for word in line.split()])
    counts = words.filter(bool).map(lambda word: (word, 1)).group_by(0).sum(1)
    ordered = counts.sort_partition(1, Order.DESCENDING).set_parallelism(1)
    return ordered.sort_partition(0, Order.ASCENDING).set_parallelism(1)


def main(path: str | None = None) -> None:
    """Print the words of a file, or of a monologue."""
    env = ExecutionEnvironment.get_execution_environment().set_parallelism(2)
    lines = env.from_collection(TEXT.splitlines()) if path is None else env.read_text_file(path)
    for word, count in counted(lines).first(8).collect():
        print(f"{count:>4} {word}")


if __name__ == "__main__":
    main(*sys.argv[1:])
