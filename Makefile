# make demo       a live job on embedded Spark; half-way a slot is killed
# make test       every check that CI runs
# make test-fast  tests without Spark, without long and heavy ones: about a minute and a half on two cores
# make coverage   the same tests, with the slowest of them and the coverage of each room; htmlcov/ has every line
# make docs       the manual as a site in build/site; a link that leads nowhere fails it
# make lint       ruff, ruff format and mypy
# make bench      records per second, and ratios against PyFlink, Flink in the JVM and PySpark
# make soak       every property with many more examples, and 1,970 schedules of faults, 170 of them on Spark
# make soak-hour  an hour at 1,000 records/s: memory, threads, sockets, disk and latency must not grow; draws a plot
# make mutation   changes the code of ten rooms in small ways and counts what their tests notice; hours
# make matrix     tests and savepoints across Python 3.11 to 3.13 and Spark 4.1 to 4.3; an hour and downloads
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
STAMP   = $(VENV)/.ready
DEMO    = .venvs/demo
FLINK   = .venvs/flink
DOCS    = .venvs/docs
CHECKED = src tests examples benchmarks docs/pictures docs/check_site.py docs/docstrings.py
FAST    = -q -n 2 @tests/fast.args
# The packages of the extra `docs`.
DOCS_PACKAGES = mkdocs-material 'mkdocstrings[python]' ruff
# A file system in memory, if the machine has one with 4 GiB free.
IN_MEMORY = $(shell test "$$(df --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 4194304 2>/dev/null && echo /dev/shm)

# The tests with some marks: $(call tested,options,marks). With RERUN set, as in CI, those that failed run once more, alone.
AGAIN  = echo 'RERUN of the tests that failed:' && $(BIN)/python -m pytest -q -rA --last-failed --last-failed-no-failures none
tested = $(BIN)/python -m pytest -q $(1) -m '$(2)' $(if $(RERUN),|| { $(AGAIN) -m '$(2)'; })

# Tests sync many thousands of small files, which takes no time in memory. A TMPDIR that is set is used as it is.
test-fast unit coverage matrix: export TMPDIR ?= $(IN_MEMORY)
# Every slot and every worker of Spark imports ekorn, and pytest rewrites its tests: each file is compiled once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo docs test test-fast unit on-spark postgres rabbitmq browser lint coverage bench soak soak-hour mutation matrix clean

demo: $(DEMO)/.ready
	@echo "demo: starting Spark and the job; the first start takes a few seconds"
	@$(DEMO)/bin/python examples/live_orders.py

test: lint unit on-spark

# Tests of whole processes mostly wait: three run at the same time, apart from those that keep the cores busy.
unit: $(STAMP) postgres rabbitmq browser
	$(call tested,-n 2,not soak and not spark and not long)
	$(call tested,-n 3 --dist worksteal,long and not spark and not soak)

# Tests with Spark need both cores and run one at a time. Some spill gigabytes: their temporary files stay on disk.
on-spark: $(STAMP) postgres rabbitmq
	$(call tested,,spark and not soak)

# The dashboard is tested in Debian's Chromium.
browser:
	@command -v chromium >/dev/null || { apt-get --option Acquire::Retries=5 update && apt-get --option Acquire::Retries=5 install --yes --no-install-recommends chromium; }

# The tests start a server of their own; only its binaries are installed, where they are missing.
postgres:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || \
	  { apt-get --option Acquire::Retries=5 update && apt-get --option Acquire::Retries=5 install --yes --no-install-recommends postgresql; }

# The package starts no service where its installation may not; the tests do not use a server that it starts anyway.
rabbitmq:
	@ls /usr/lib/rabbitmq/bin/rabbitmq-server >/dev/null 2>&1 || \
	  { apt-get --option Acquire::Retries=5 update && RUNLEVEL=1 apt-get --option Acquire::Retries=5 install --yes --no-install-recommends rabbitmq-server; }

test-fast: $(STAMP) postgres
	$(BIN)/python -m pytest $(FAST)

# Material for MkDocs announces its successor at every start; the versions of the site are those of constraints.txt.
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(DOCS)/.ready
	$(DOCS)/bin/mkdocs build --strict
	$(DOCS)/bin/python docs/check_site.py build/site

lint: $(STAMP)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy

# Slots are processes of their own and are not measured; the tests of a room run its code in the test's process.
coverage: $(STAMP) postgres
	$(BIN)/python -m pytest $(FAST) --durations=25 --cov=ekorn --cov-report=html --cov-report=json:htmlcov/coverage.json
	$(BIN)/python -m tests.coverage_by_room htmlcov/coverage.json

soak: $(STAMP) postgres
	$(BIN)/python -m pip install --quiet --constraint constraints.txt -e '.[mutation,bench]'
	$(BIN)/python -m pytest -q -m 'soak or hypothesis' --timeout 14400 --hypothesis-profile=soak tests
	$(BIN)/python -m tests.campaign -j 2 1000-1999
	$(BIN)/python -m tests.campaign --columns -j 2 1000-1199
	$(BIN)/python -m tests.campaign --kafka 1000-1039
	$(BIN)/python -m tests.campaign --postgres 1000-1029
	$(BIN)/python -m tests.campaign --kafka --postgres 1000-1029
	$(BIN)/python -m tests.campaign --spark 2000-2099
	$(BIN)/python -m tests.campaign --spark --continuous 2000-2029
	$(BIN)/python -m tests.campaign --spark --columns 2000-2019
	$(BIN)/python -m tests.campaign --spark --cluster 2000-2019

# MINUTES=5 shows that it runs; what grows slowly shows in an hour.
MINUTES ?= 60
soak-hour: $(STAMP)
	$(BIN)/python -m benchmarks.long_run --minutes $(MINUTES) --samples build/long_run.csv || FAILED=1; \
	  $(BIN)/python docs/pictures/long_run.py build/long_run.csv build/long_run.svg; exit $${FAILED:-0}

# MUTATION='--per-room 0' is every place of the rooms and takes a night; python -m tests.mutation --help has the rest.
mutation: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt -e '.[mutation]'
	$(BIN)/python -m pytest -q -m 'soak or not soak' tests/mutation
	$(BIN)/python -m tests.mutation $(MUTATION)

bench: $(STAMP) $(FLINK)/.ready
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	$(BIN)/python -m benchmarks --pyflink $(FLINK)/bin/python

matrix: $(STAMP)
	$(BIN)/python -m tests.matrix

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt -e '.[dev]'
	touch $@

$(DEMO)/.ready: pyproject.toml constraints.txt
	@echo "demo: creating the virtual environment $(DEMO)"
	@$(PYTHON) -m venv $(DEMO)
	@echo "demo: installing ekorn and PySpark (450 MB to download the first time)"
	@$(DEMO)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt -e '.[spark]'
	@touch $@

# The site is built from the sources: neither ekorn nor Spark is installed for it.
$(DOCS)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt $(DOCS_PACKAGES)
	touch $@

# PyFlink pins old versions of packages that Ekorn uses too, so it has an environment of its own.
$(FLINK)/.ready:
	$(PYTHON) -m venv $(FLINK)
	$(FLINK)/bin/python -m pip install --quiet --upgrade pip wheel 'setuptools<80'
	$(FLINK)/bin/python -m pip install --quiet 'apache-flink>=2.3,<2.4'
	touch $@

clean:
	rm -rf $(VENV) .venvs .services build htmlcov .coverage src/*.egg-info
