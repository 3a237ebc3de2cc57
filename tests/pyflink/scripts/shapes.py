"""A module beside scripts, with PyFlink imports of its own, at the top and inside functions."""

import pyflink.common
from pyflink.common.typeinfo import Types
from pyflink.datastream.functions import FlatMapFunction, MapFunction

CORNERS = {"triangle": 3, "square": 4}
TYPE = Types.TUPLE([Types.STRING(), Types.INT()])


class Corners(MapFunction):
    def map(self, value):
        from pyflink.common import Row

        return Row(value, CORNERS.get(value, 0))


class Repeat(FlatMapFunction):
    def flat_map(self, value):
        for _ in range(value[1]):
            yield value[0], pyflink.common.Row(value[1])[0]
