# Everything installs into .venv here; nothing is downloaded once that is done.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SOURCES := service guardrail_client tests load_tests models examples docs

.PHONY: help demo serve test check bench docs clean

help: ## Show what can be made.
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(STAMP): requirements/dev.txt pyproject.toml guardrail_client/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "needs Python 3.11 or newer; name one with make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
		-e guardrail_client -e . -e service/guardrail_offline -e models/guardrail_models -e load_tests/guardrail_bench
	@touch $@

demo: $(STAMP) ## Start the service on the embedded models and judge real RAG answers.
	$(BIN)/python examples/demo/run.py

serve: $(STAMP) ## Serve the HTTP API on 127.0.0.1:8080.
	$(BIN)/guardrail serve

test: $(STAMP) ## Run all tests; needs no network.
	$(BIN)/python -m pytest

check: $(STAMP) ## Lint, format, types, import rules.
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP) ## Measure start-up time and memory.
	$(BIN)/guardrail bench start

docs: $(STAMP) ## Write the generated files: OpenAPI, JSON Schemas.
	$(BIN)/python docs/generate.py

clean: ## Remove the environment and caches.
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
