"""Kafka: a source whose splits are partitions, and a sink with transactions. confluent-kafka moves the records.

| modules | |
|---|---|
| `source`, `consuming`, `deserialization` | from partitions to records |
| `offsets` | where reading starts and stops |
| `sink`, `serialization`, `plain_writer` | from records to topics |
| `transactional_writer`, `transactions` | exactly once: who writes, and who commits after a crash |
| `wire`, `wire_login` | the five requests on transactions that confluent-kafka does not offer |
| `client_properties`, `client`, `failures` | the client: settings, start, and which of its errors fail the job |
| `older_names` | `FlinkKafkaConsumer` and `FlinkKafkaProducer` |
"""
