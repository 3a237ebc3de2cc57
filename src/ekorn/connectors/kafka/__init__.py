"""Kafka: a source whose splits are partitions, and a sink with transactions. confluent-kafka moves the records.

| modules | |
|---|---|
| `source`, `topic_partitions`, `consuming`, `deserialization` | from partitions to records |
| `offsets` | where reading starts and stops |
| `sink`, `record_serialization`, `producing` | from records to topics |
| `transactions` | exactly once: the commits after a crash, and the transactions that are aborted |
| `wire`, `wire_login` | the requests on transactions that confluent-kafka does not offer |
| `client_properties`, `clients` | the client: settings, start, and which of its errors fail the job |
"""
