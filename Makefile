# Two commands: `make demo` shows what Windrow does, on a local Spark; `make test` proves everything.
# Both build their own environment in .venv, and bring Java if the machine has none.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-long soak check lint types layers format bench bench-aggregates bench-patterns bench-joins bench-scheduling bench-live bench-spark lock clean
.DEFAULT_GOAL := test

$(READY): pyproject.toml requirements.lock requirements-java.lock
	@$(PYTHON) -c 'import sys; sys.exit("Windrow needs Python 3.10 or newer, found " + sys.version.split()[0]) if sys.version_info < (3, 10) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the packages of requirements.lock; Spark is large, the first time takes some minutes"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m windrow.pipeline.java >/dev/null 2>&1 || \
	  { echo "no Java 17+ here: bringing one"; \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-java.lock; }
	@touch $@

demo: $(READY) ## 240 queries over a simulated packet stream, on a local Spark
	@$(BIN)/windrow demo

test: check ## everything that must be true, but the slowest
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m 'not slow'

test-long: check ## really everything, with many more random cases, 200 kills and half an hour of soak
	WINDROW_EXAMPLES=1000 WINDROW_KILLS=200 WINDROW_SOAK_SECONDS=1800 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

check: lint types layers

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

format: $(READY) ## rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

soak: $(READY) ## half an hour of live input: memory, threads and files stay flat
	WINDROW_SOAK_SECONDS=1800 $(BIN)/python -m pytest tests/pipeline/test_soak.py

bench-spark: $(READY) ## benchmarks/spark_pipeline: table and plot
	$(BIN)/python -m benchmarks.spark_pipeline

bench: $(READY) ## benchmarks/many_queries: table and plot
	$(BIN)/python -m benchmarks.many_queries

bench-aggregates: $(READY) ## benchmarks/shared_aggregates: tables and plots
	$(BIN)/python -m benchmarks.shared_aggregates --plot-dir build/benchmarks

bench-patterns: $(READY) ## benchmarks/update_patterns: tables and plot
	$(BIN)/python -m benchmarks.update_patterns --plot-dir build/benchmarks

bench-joins: $(READY) ## benchmarks/joins: tables and plots
	$(BIN)/python -m benchmarks.joins --plot-dir build/benchmarks --spark

bench-scheduling: $(READY) ## benchmarks/scheduling: tables and plots
	$(BIN)/python -m benchmarks.scheduling --plot-dir build/benchmarks

bench-live: $(READY) ## benchmarks/scheduling/live: a thousand live queries on Spark, table and plot
	$(BIN)/python -m benchmarks.scheduling.live --plot-dir build/benchmarks

lock: ## pin the versions for Python 3.10 to 3.13 anew
	uv pip compile --universal --python-version 3.10 --extra dev --no-header --no-annotate --no-emit-index-url \
	  --no-emit-package windrow --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
