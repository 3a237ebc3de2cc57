"""The first hour of three users, as they would spend it: a PySpark user, a data engineer and a PyFlink user."""
