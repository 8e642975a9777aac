# Every target sets up what it needs. `make demo` and `make test` are all a user has to know.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready

# The tests start hundreds of processes: each would compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup device plugin emulation demo test test-all check check-headers format bench docs tables browser clean

help:            ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/: .*## /\t/' | expand -t 14

setup: $(STAMP) browser plugin  ## a .venv with everything

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,libraries]'
	$(BIN)/pip install --quiet --constraint constraints.txt --no-deps torchvision timm
	touch $(STAMP)

browser: $(STAMP)
	@sh tools/install_browser.sh

demo: emulation  ## convert a real training program, run it unchanged on a simulated device, prove both
	$(BIN)/python examples/demo.py

device: $(STAMP)
	@$(BIN)/python -m torchferry.sim.build > /dev/null

plugin: $(STAMP)
	@$(BIN)/python -m torchferry.emulate.build --plugin-only --if-possible > /dev/null

emulation: $(STAMP) ## the vendor's own plugin and what it needs to run without a device, where the plugin can be had
	@$(BIN)/python -m torchferry.emulate.build --if-possible > /dev/null

test: setup device emulation  ## the tests
	$(BIN)/pytest -n 2 --dist worksteal -m "not long" tests

test-all: setup device emulation $(VENV)/.docs  ## the tests, and the long ones: real projects, every operator, all models
	$(BIN)/pytest -n 2 --dist worksteal tests

check: $(STAMP)  ## formatting, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check-headers: $(STAMP)  ## compile the simulated device's sources against other PyTorch releases (downloads them)
	$(BIN)/python tools/check_sim_headers.py

format: $(STAMP) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: emulation ## speed, as ratios measured in one run
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/simulated.py
	$(BIN)/python benchmarks/simulated.py --emulated
	$(BIN)/python benchmarks/layer.py
	$(BIN)/python benchmarks/operators.py
	$(BIN)/python benchmarks/accuracy_file.py
	$(BIN)/python benchmarks/accuracy_record.py
	$(BIN)/python benchmarks/accuracy_compare.py
	$(BIN)/python benchmarks/accuracy_curves.py
	$(BIN)/python benchmarks/accuracy_overflow.py
	$(BIN)/python benchmarks/analyze.py
	$(BIN)/python benchmarks/affinity.py
	$(BIN)/python benchmarks/oplog.py
	$(BIN)/python benchmarks/perf_collect.py
	$(BIN)/python benchmarks/explain.py
	$(BIN)/python -m benchmarks.pages

$(VENV)/.docs: $(STAMP)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

docs: $(VENV)/.docs  ## the tables in the docs that are made from the code, and the documentation site: site/index.html
	$(BIN)/python tools/make_rule_docs.py
	$(BIN)/python tools/make_vendor_table.py
	$(BIN)/python tools/make_similar_table.py
	$(BIN)/python tools/make_operator_table.py
	$(BIN)/python -m tools.make_schemas
	$(BIN)/python -m tools.make_terminal_pictures
	$(BIN)/python -m tools.website --output site

tables: device   ## the pages that are made from long runs: every operator, all models
	$(BIN)/python -m tools.conformance --vendor ascend --jobs 2 -o .cache/conformance.json
	$(BIN)/python -m tools.make_conformance_docs .cache/conformance.json
	$(BIN)/python tools/make_model_table.py ascend
	$(BIN)/python tools/make_readiness_table.py

clean:           ## remove what set-up and runs made
	rm -rf $(VENV) .cache demo-out build dist site
