"""Databases behind `jdbc:` URLs, through Python's DB-API. Connections are opened in the SLOT process.

| modules | |
|---|---|
| `options` | what a program says about the connection and about batches |
| `database`, `databases` | what a driver offers; the registry: which driver serves which URL |
| `postgresql`, `sqlite` | one driver each |
| `placeholders` | statements with `?` |
| `row_values` | from records to the values of a statement |
| `transactions` | transactions that are tried again |
| `sink`, `exactly_once` | the two sinks |
| `source` | the source and its builder |
| `ordered_query` | the rows of a query in a fixed order, from a position |
| `partitions`, `growing` | readers: a range of a column, once; a growing column, without end |
"""
