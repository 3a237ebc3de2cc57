"""Databases behind `jdbc:` URLs, through Python's DB-API. Connections are opened in the SLOT process.

| modules | |
|---|---|
| `options` | the options of the connection and of batches |
| `database` | the interface of a driver; statements with `?`, and the values of records for them |
| `databases` | the registry: which driver serves which URL |
| `postgresql`, `sqlite` | one driver each |
| `repeated_transactions` | transactions that are tried again |
| `sink`, `exactly_once` | the two sinks |
| `column_form` | what the sinks do with batches of columns, and the statement that they run for each row |
| `postgresql_copy` | `COPY` instead of the statement, where PostgreSQL then stores the same |
| `source` | the source, its builder and its readers: a range of a column once, or a growing column without end |
| `ordered_query` | the rows of a query in a fixed order, from a position |
"""
