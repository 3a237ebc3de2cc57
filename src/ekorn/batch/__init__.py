"""The DataSet API: Flink's batch programs, planned onto Spark's RDDs.

| folder | runs in | holds |
|---|---|---|
| `plan` | every process | what a program drew, as values: operator specs, keys, partitionings |
| `program` | the driver | the classes of the API: environment, data sets, grouping and join builders |
| `planner` | the driver | translates a plan to RDDs and runs it; imports PySpark |
| `iterations` | the driver | runs iterations: one Spark job for each superstep |
| `inputs`, `outputs` | Spark's Python workers | inputs and outputs of programs: files, sources, formats of the user |
| `tasks` | Spark's Python workers | the loops over records, blobs, sorting, errors |

`ekorn.dataset` has the public names.
"""
