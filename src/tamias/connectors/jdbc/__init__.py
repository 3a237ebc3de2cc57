"""Databases behind `jdbc:` URLs, through Python's DB-API. Connections are opened in the SLOT process.

| modules | |
|---|---|
| `options` | what a program says about the connection and about batches |
| `databases` | the registry: which driver serves which URL |
| `postgresql`, `sqlite` | one driver each |
| `placeholders` | statements with `?` |
| `columns` | columns of a query, and the types of the rows |
| `row_values` | from records to the values of a statement |
| `batches` | batches of rows, written in one transaction, with retries |
| `sink`, `exactly_once` | the two sinks |
| `source`, `partitions`, `growing` | the source: once, by ranges of a column, or on and on, by a growing column |
"""
