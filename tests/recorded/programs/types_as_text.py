"""How types write themselves."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "facts"


def build(env):
    types = [Types.STRING(), Types.BYTE(), Types.BOOLEAN(), Types.SHORT(), Types.INT(), Types.LONG(), Types.FLOAT(),
             Types.DOUBLE(), Types.CHAR(), Types.BIG_INT(), Types.BIG_DEC(), Types.INSTANT(), Types.SQL_DATE(),
             Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.PICKLED_BYTE_ARRAY(), Types.ROW([Types.INT()]),
             Types.ROW_NAMED(["a"], [Types.INT()]), Types.TUPLE([Types.INT(), Types.STRING()]),
             Types.PRIMITIVE_ARRAY(Types.INT()), Types.BASIC_ARRAY(Types.INT()), Types.OBJECT_ARRAY(Types.STRING()),
             Types.MAP(Types.STRING(), Types.INT()), Types.LIST(Types.INT())]
    return [(str(declared), repr(declared)) for declared in types]
