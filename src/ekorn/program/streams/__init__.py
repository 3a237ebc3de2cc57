"""The streams of a program: every transformation, checked at the call and drawn into the stream graph."""
