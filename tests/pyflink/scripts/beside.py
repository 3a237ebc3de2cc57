"""Uses a module that lies beside it, and a class of its own as a record."""

import sys

import shapes
from pyflink.datastream import StreamExecutionEnvironment
from shapes import Corners, Repeat


class Counted:
    def __init__(self, shape, count):
        self.shape, self.count = shape, count

    def __str__(self):
        return f"{self.shape}: {self.count}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    corners = env.from_collection(sys.argv[1:]).map(Corners()).flat_map(Repeat(), shapes.TYPE)
    counted = corners.map(lambda pair: Counted(pair[0], pair[1])).key_by(lambda c: c.shape)
    counted.reduce(lambda a, b: Counted(a.shape, a.count + b.count)).print()
    env.execute()


if __name__ == "__main__":
    main()
