"""Tables of savepoints through the data source of Spark, without a session: read and written as its tasks do."""

import pickle

from pyspark.sql import Row
from pyspark.sql.types import ArrayType, MapType, StructType

from ekorn.state_processor.reading.stored_savepoint import open_savepoint
from ekorn.state_processor.spark.registration import EkornStateSource


def read_rows(path, **options):
    """Read a table of a savepoint, as the tasks of Spark do; return its columns and the rows."""
    source = EkornStateSource({"path": str(path), **options})
    schema = source.schema()
    reader = source.reader(schema)
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    return schema, [row for batch in batches for row in batch.to_pylist()]


def write_rows(path, schema, tasks, **options):
    """Write the rows of some tasks to a new savepoint, as Spark does."""
    writer = EkornStateSource({"path": str(path), **options}).writer(schema, overwrite=False)
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


def rewritten(old, new, **options):
    """Read a table of a savepoint and write its rows to a new one, in two tasks and in another order."""
    reading = {key: value for key, value in options.items() if key not in ("writeRegisteredTimers", "maxParallelism")}
    if "writeRegisteredTimers" in options:
        reading["readRegisteredTimers"] = "true"
    if "stateVarName" in options:
        reading["flattenCollectionTypes"] = "false"
    schema, found = read_rows(old, **reading)
    rows = [row_of(schema, row) for row in found]
    write_rows(new, schema, [rows[1::2], rows[::2]], baseSavepoint=str(old), **options)
    return str(new)


def row_of(schema, values):
    """Return a row of Spark, from a row as Arrow gives it: maps are lists of pairs there."""
    return Row(**{field.name: _value(field.dataType, values[field.name]) for field in schema.fields})


def _value(data_type, value):
    match data_type:
        case _ if value is None:
            return None
        case StructType():
            return row_of(data_type, value)
        case ArrayType():
            return [_value(data_type.elementType, each) for each in value]
        case MapType():
            return {_value(data_type.keyType, k): _value(data_type.valueType, v) for k, v in value}
        case _:
            return value


def by_stored_entries(old, new, uid):
    """Read all keyed state of an operator in the stored form, and write a new savepoint from the rows."""
    return rewritten(old, new, operatorUid=uid, storedForm="true")


def by_states(old, base, uid):
    """Read one keyed state of an operator after another as rows, and its timers, and write new savepoints from them."""
    infos = open_savepoint(old).operator(uid).keyed_states
    with_rows = [
        info for info in infos if info.kind != "timers" and read_rows(old, operatorUid=uid, stateVarName=info.name)[1]
    ]
    of_states = [{"stateVarName": info.name} for info in with_rows]
    of_timers = [{"writeRegisteredTimers": "true"}] if any(info.kind == "timers" for info in infos) else []
    for number, options in enumerate(of_states + of_timers):
        old = rewritten(old, base / f"{uid}-{number}", operatorUid=uid, **options)
    return old
