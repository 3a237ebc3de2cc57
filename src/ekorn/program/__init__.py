"""What a program calls: it draws the stream graph, checks each call where it is written, and submits jobs.

| rooms | |
|---|---|
| `environment/` | `StreamExecutionEnvironment`: settings, sources, submission |
| `streams/` | the stream classes: every transformation draws an operator |
| `checks/` | what is checked at a call: arguments, names, pickling |
| `running/` | what a program holds of its running jobs: clients, futures, collected records, Ctrl-C |
| `pyflink_alias` | `pyflink` as another name of ekorn |
"""
