"""A transactional system outside the job, which survives crashes as a database does, and the sink that writes to it."""

import itertools

from ekorn.functions.sink_contract import TwoPhaseCommitSinkFunction

SYSTEMS = {}
_numbers = itertools.count(1)


class ExternalSystem:
    """Keeps transactions by id; every misuse is an error, so that a wrong order of calls fails the test."""

    def __init__(self):
        self.name = f"system-{next(_numbers)}"
        self.open = {}
        self.prepared = {}
        self.committed = {}  # id -> records, in the order of commits
        self.aborted = set()
        self.calls = []
        SYSTEMS[self.name] = self

    @property
    def records(self):
        return [record for records in self.committed.values() for record in records]


class TransactionalSink(TwoPhaseCommitSinkFunction):
    def __init__(self, system):
        self.system_name = system.name

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    @property
    def system(self):
        return SYSTEMS[self.system_name]

    def begin_transaction(self):
        transaction = f"t{next(_numbers)}"
        self.system.open[transaction] = []
        self.system.calls.append("begin")
        return transaction

    def invoke(self, transaction, value, context):  # type: ignore[override]
        self.system.open[transaction].append(value)

    def pre_commit(self, transaction):
        self.system.calls.append("pre_commit")
        self.system.prepared[transaction] = self.system.open.pop(transaction)

    def commit(self, transaction):
        self.system.calls.append("commit")
        if transaction in self.system.committed:
            return
        assert transaction not in self.system.aborted, f"{transaction} is committed after it was aborted"
        self.system.committed[transaction] = self.system.prepared.pop(transaction)

    def abort(self, transaction):
        self.system.calls.append("abort")
        assert transaction not in self.system.committed, f"{transaction} is aborted after it was committed"
        self.system.open.pop(transaction, None)
        self.system.prepared.pop(transaction, None)
        self.system.aborted.add(transaction)
