"""The classes of the DataSet API: they draw a plan and check each call where it is written. Runs in the driver."""
