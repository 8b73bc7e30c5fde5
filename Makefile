# The two commands: `make run` and `make test`. Everything else serves them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYTHONDONTWRITEBYTECODE := 1

.PHONY: run test check lint types bench picture setup lock clean

run: setup  ## Run the main job on the embedded stack and tell its story.
	@$(BIN)/python -m steponce.local

test: setup  ## Run every test that needs nothing but Python.
	@$(BIN)/pytest -n 4 --dist loadfile

check: lint types test  ## What CI runs.

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup
	@$(BIN)/mypy

bench: setup  ## Measure transitions, writes, reads and milliseconds of every path.
	@$(BIN)/python -m tests.bench

picture: setup  ## Draw the state machine into the README.
	@$(BIN)/python -m tests.rules.picture

setup: $(VENV)/installed

$(VENV)/installed: requirements.lock pyproject.toml
	@echo "Setting up $(VENV) from requirements.lock ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "steponce needs Python 3.11 or newer: make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

lock:  ## Choose the newest versions that pyproject.toml allows, for every Python and platform.
	@$(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/pip install -q uv
	@$(VENV)/lock/bin/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --extra dev pyproject.toml -o requirements.lock
	@$(VENV)/lock/bin/uv pip compile -q --upgrade --universal --python-version 3.13 --no-header --no-annotate pyproject.toml -o src/requirements.txt

clean:
	@rm -rf $(VENV) .aws-sam .steponce .hypothesis .mypy_cache .pytest_cache .ruff_cache
