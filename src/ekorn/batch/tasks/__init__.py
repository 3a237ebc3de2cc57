"""The code that runs in the tasks of a DataSet program, in the Python workers of Spark."""
