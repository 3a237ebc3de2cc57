"""State in a slot beside the subtasks that own it: written, copied, read in advance, looked up."""
