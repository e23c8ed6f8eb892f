# Two commands: `make test` proves everything, `make bench` measures it. Both build their own environment in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: test test-long check lint types layers format bench lock clean
.DEFAULT_GOAL := test

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("Windrow needs Python 3.10 or newer, found " + sys.version.split()[0]) if sys.version_info < (3, 10) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

test: check ## everything that must be true, in a few minutes
	$(BIN)/python -m pytest -n auto

test-long: check ## the same with many more random cases
	WINDROW_EXAMPLES=1000 $(BIN)/python -m pytest -n auto

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

bench: $(READY) ## benchmarks/many_queries: table and plot
	$(BIN)/python -m benchmarks.many_queries

lock: ## pin the versions for Python 3.10 to 3.13 anew
	uv pip compile --universal --python-version 3.10 --extra dev --no-header --no-annotate --no-emit-index-url \
	  --no-emit-package windrow --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
