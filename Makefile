# Everything installs into .venv here; nothing is downloaded once that is done.
PYTHON ?= python3
VENV := .venv
# The first process writes the bytecode of what it imports; every other one would compile it again.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/bin
DEMO := $(VENV)/.demo
DEV := $(VENV)/.dev
PROJECTS := VERSION release.py $(shell git ls-files '*pyproject.toml' '*setup.py' 2>/dev/null \
	|| find . -name pyproject.toml -o -name setup.py)
SOURCES := service guardrail_client tests load_tests models examples docs setup.py release.py
# Two processes share the tests; one that is done takes over what the other has left.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

# The service's own unit tests: no calibration, client, export, measuring or training.
FAST := tests/unit $(addprefix --ignore tests/unit/,bench client decisions models offline training)

.PHONY: help demo serve test test-fast check bench docs clean

help: ## Show what can be made.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 11

$(DEMO): requirements/demo.txt requirements/install $(PROJECTS)
	@PYTHON=$(PYTHON) requirements/install $(VENV) demo.txt
	@touch $@

$(DEV): requirements/dev.txt $(DEMO)
	@PYTHON=$(PYTHON) requirements/install $(VENV) dev.txt
	@touch $@

demo: $(DEMO) ## Start the service on the embedded models and judge real RAG answers.
	$(BIN)/python examples/demo/run.py

serve: $(DEMO) ## Serve the HTTP API on 127.0.0.1:8080.
	$(BIN)/guardrail serve

test: $(DEV) ## Run all tests; needs no network.
	$(PYTEST)

test-fast: $(DEV) ## Run the unit tests of the service: less than a minute on two free cores.
	$(PYTEST) $(FAST)

check: $(DEV) ## Lint, format, types, import rules.
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(DEMO) ## Measure start-up time and memory.
	$(BIN)/guardrail bench start

docs: $(DEV) ## Write the generated files: OpenAPI, JSON Schemas.
	$(BIN)/python docs/generate.py

clean: ## Remove the environment and caches.
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
