# `make test` is what CI runs; `make demo` is the main job. Both set themselves up on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := demo-results
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PACKAGES := --constraint constraints.txt --editable '.[dev]'

# Container images often forbid bytecode. Every worker process would then compile torch and Ray anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install test unit lint types demo reproduction clean

help:  ## Say what there is to make.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP)  ## Make a virtual environment with the pinned versions.

$(STAMP): pyproject.toml constraints.txt
	@echo "Setting up $(VENV): torch, Ray and what they need, about 6 GB (half a minute on a fast line) ..."
	$(PYTHON) -m venv $(VENV)
	@# uv installs in a third of pip's time. Where only pip's own settings lead to an index, pip installs.
	@# Neither compiles: Python compiles what it imports, and all 20,000 files would take longer.
	$(PIP) --constraint constraints.txt uv && $(BIN)/uv pip install --quiet --python $(BIN)/python $(PACKAGES) \
	  || $(PIP) --no-compile $(PACKAGES)
	@touch $@

lint: $(STAMP)  ## Check style and format.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## Check types.
	$(BIN)/mypy

test: $(STAMP)  ## Lint, types, tests: what CI runs.
	@# Types beside the tests: tests of Ray wait for processes to start.
	$(MAKE) lint
	$(MAKE) --jobs=2 types unit

unit: $(STAMP)
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

demo: $(STAMP)  ## Search, select, run on fresh seeds: the main job on data that needs no download.
	rm -rf $(DEMO)
	$(BIN)/contrasweep sweep fair-cclk --data colour-digits --trials 24 --epochs 10 --name demo --results $(DEMO)
	$(BIN)/contrasweep best demo --results $(DEMO) -o $(DEMO)/best.yaml
	$(BIN)/contrasweep show demo --results $(DEMO) --plot $(DEMO)/demo.png
	$(BIN)/contrasweep run $(DEMO)/best.yaml --seeds 5 --results $(DEMO)

reproduction: $(STAMP)  ## Render the pages of the papers' tables from stored scores; no training.
	$(BIN)/python -m contrasweep.tuning.tables.document docs

clean:  ## Remove the virtual environment, caches and demo results.
	rm -rf $(VENV) $(DEMO) .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
