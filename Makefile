# Every target works on a fresh machine with python3 and nothing else: the environment is made when it is missing,
# and again when what it is made from has changed. A second run installs nothing.

PYTHON  ?= python3
BIN     := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint format docs bench dist clean

help:  ## Show these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

.venv/.user: pyproject.toml constraints.txt
	@echo "Setting up .venv (the first time takes a few minutes) ..."
	@rm -rf .venv
	@$(PYTHON) -m venv .venv
	@$(INSTALL) -e .
	@touch $@

.venv/.developer: .venv/.user
	@echo "Adding what tests, linters and benchmarks need ..."
	@$(INSTALL) -e '.[dev]'
	@touch $@

demo: .venv/.user  ## Find the best model for the bundled graph in two minutes, predict with it, write a page about it
	@mkdir -p demo
	@$(BIN)/gcnsl inspect debian --plot demo/debian.png
	@$(BIN)/gcnsl train debian --minutes 2 -o demo/model --report demo/page.html
	@$(BIN)/gcnsl predict demo/model -o demo/predictions.csv
	@$(BIN)/gcnsl report --store results/results.jsonl -o demo/paper.html
	@echo "Open demo/page.html for the model, and demo/paper.html for the paper's tables and figures beside ours."

# The tests of a file stay in one process, as they share what is slow to set up.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile

test: .venv/.developer  ## Run the tests that are quick, in five minutes
	@$(PYTEST) -m "not slow"

test-all: .venv/.developer  ## Run all tests: with browsers, kills, wheels, recipes and many chains, too
	@$(PYTEST)

# Types are checked for the oldest Python that pyproject.toml declares, and for the newest.
lint: .venv/.developer  ## Check style and types
	@$(BIN)/ruff check --no-cache .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/mypy --python-version 3.13

format: .venv/.developer  ## Fix what can be fixed by machine
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: .venv/.developer  ## Build the documentation site; open docs/_build/index.html
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html docs docs/_build

bench: .venv/.developer  ## Run every benchmark; each prints a table and writes to bench/results
	@set -e; for script in bench/*.py; do echo "== $$script"; $(BIN)/python $$script; done

dist: .venv/.developer  ## Build the wheel and the sdist into dist/
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation

clean:  ## Remove the environment and what was built
	@rm -rf .venv demo dist build docs/_build docs/reference/generated .mypy_cache .pytest_cache .ruff_cache .hypothesis
