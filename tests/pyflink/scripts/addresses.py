"""JSON in rows: maps, a filter and a sum, each shown by a job of its own."""

import json
import logging
import sys

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment


def show(ds, env):
    ds.print()
    env.execute()


def addresses():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    people = env.from_collection(
        collection=[(1, '{"name": "Ada", "age": 36, "home": {"city": "London"}}'),
                    (2, '{"name": "Ben", "age": 51, "home": {"city": "Izmir"}}'),
                    (3, '{"name": "Cem", "age": 17, "home": {"city": "Izmir"}}')],
        type_info=Types.ROW_NAMED(["id", "info"], [Types.INT(), Types.STRING()]))

    def older(person):
        info = json.loads(person.info)
        info["age"] += 1
        return person.id, json.dumps(info)

    show(people, env)
    show(people.map(older), env)
    show(people.filter(lambda person: person.id > 1).map(older), env)
    show(people.map(lambda person: (json.loads(person.info)["home"]["city"], json.loads(person.info)["age"]))
         .key_by(lambda pair: pair[0]).sum(1), env)
    show(people.map(lambda person: Row(person.id * 1.5, None, [person.id]),
                    Types.ROW([Types.DOUBLE(), Types.STRING(), Types.LIST(Types.INT())])), env)


if __name__ == '__main__':
    logging.basicConfig(stream=sys.stdout, level=logging.WARNING, format="%(message)s")
    addresses()
