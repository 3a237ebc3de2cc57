"""Tables of savepoints through the data source of Spark, without a session: read and written as its tasks do."""

import pickle

from pyspark.sql import Row

from tamias.state_processor.spark.state_source import TamiasStateSource


def read_rows(path, **options):
    """Read a table of a savepoint, as the tasks of Spark do; return its columns and the rows."""
    source = TamiasStateSource({"path": str(path), **options})
    schema = source.schema()
    reader = source.reader(schema)
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    return schema, [row for batch in batches for row in batch.to_pylist()]


def write_rows(path, schema, tasks, **options):
    """Write the rows of some tasks to a new savepoint, as Spark does."""
    writer = TamiasStateSource({"path": str(path), **options}).writer(schema, overwrite=False)
    writer.commit([pickle.loads(pickle.dumps(writer)).write(iter(task)) for task in tasks])


def by_operator_rows(old, base, uid, names, *, stored_form):
    """Read operator states of an operator as rows, and write one new savepoint after another from them."""
    for number, name in enumerate(names):
        options = {"operatorUid": uid, "operatorState": name, "storedForm": str(stored_form).lower()}
        schema, found = read_rows(old, **options)
        rows = [Row(**row) for row in found]
        new = base / f"{uid}-{number}"
        write_rows(new, schema, [rows[1::2], rows[::2]], baseSavepoint=old, **options)
        old = str(new)
    return old
