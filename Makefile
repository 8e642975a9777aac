# Every target sets up what it needs. `make demo` and `make test` are all a user has to know.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all check format bench docs browser clean

help:            ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/: .*## /\t/' | expand -t 14

setup: $(STAMP) browser  ## a .venv with everything

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

browser: $(STAMP)
	@sh tools/install_browser.sh

demo: $(STAMP)   ## convert a real training program for three vendors and show the result
	$(BIN)/python examples/demo.py

test: setup      ## the tests
	$(BIN)/pytest -n 2 -m "not corpus" tests

test-all: setup  ## the tests, and the conversion of real projects from the package registry
	$(BIN)/pytest -n 2 tests

check: $(STAMP)  ## formatting, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)  ## speed, as ratios measured in one run
	$(BIN)/python benchmarks/run.py

docs: $(STAMP)   ## the pages that are made from the code
	$(BIN)/python tools/make_rule_docs.py
	$(BIN)/python tools/make_vendor_table.py

clean:           ## remove what set-up and runs made
	rm -rf $(VENV) .cache demo-out build dist
