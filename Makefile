# make demo   a live job on embedded Spark, with a slot killed on the way
# make test   every check that CI runs
# make bench  records per second, and ratios against PyFlink and PySpark
# make soak   every property with many more examples, and five hundred schedules of faults
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
STAMP   = $(VENV)/.ready
FLINK   = .venvs/flink

.PHONY: demo test unit lint bench soak clean

demo: $(STAMP)
	$(BIN)/python examples/live_orders.py

test: lint unit

unit: $(STAMP)
	$(BIN)/python -m pytest -q

lint: $(STAMP)
	$(BIN)/ruff check src tests examples benchmarks
	$(BIN)/mypy

soak: $(STAMP)
	$(BIN)/python -m pytest -q -m 'soak or hypothesis' --timeout 14400 --hypothesis-profile=soak tests
	$(BIN)/python -m tests.campaign -j 2 1000-1499

bench: $(STAMP) $(FLINK)/.ready
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	$(BIN)/python -m benchmarks --pyflink $(FLINK)/bin/python

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[spark,dev]'
	touch $@

# PyFlink has dependencies of its own, some of them old: it lives beside us, never with us.
$(FLINK)/.ready:
	$(PYTHON) -m venv $(FLINK)
	$(FLINK)/bin/python -m pip install --quiet --upgrade pip wheel 'setuptools<80'
	$(FLINK)/bin/python -m pip install --quiet 'apache-flink>=2.3,<2.4'
	touch $@

clean:
	rm -rf $(VENV) .venvs build src/*.egg-info
