# `make test` is what CI runs; `make demo` is the main job. Both set themselves up on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := demo-results
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PACKAGES := --constraint constraints.txt --editable '.[dev]'

# Container images often forbid bytecode. Every worker process would then compile torch and Ray anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install test unit cluster lint types demo catalogue reproduction docs notebooks dist lowest clean

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
	@# One process more than there are cores: tests of Ray wait for processes to start and to end. A further one would
	@# find no idle core, and would import and collect everything once more.
	$(BIN)/pytest --numprocesses $$($(BIN)/python -c 'import os; print(min(4, os.cpu_count() + 1))') --dist loadfile --no-loadscope-reorder --durations 20

cluster: $(STAMP)  ## Run the commands of docs/cluster.md on several Ray nodes on this machine, for some minutes.
	$(BIN)/pytest tests/cluster -m cluster

demo: $(STAMP)  ## Search, select, run on fresh seeds: the main job on data that needs no download.
	rm -rf $(DEMO)
	$(BIN)/contrasweep sweep fair-cclk --data colour-digits --trials 40 --epochs 10 --name demo --results $(DEMO)
	$(BIN)/contrasweep best demo --results $(DEMO) -o $(DEMO)/best.yaml
	$(BIN)/contrasweep show demo --results $(DEMO) --plot $(DEMO)/demo.png
	$(BIN)/contrasweep run $(DEMO)/best.yaml --seeds 5 --results $(DEMO)

catalogue: $(STAMP)  ## Write down what methods and datasets declare, which is read before torch is imported.
	$(BIN)/python -m contrasweep.tuning.catalogue.writing
	$(BIN)/python -m docs.which_method_page

reproduction: $(STAMP)  ## Render the pages of the papers' tables from stored scores; no training.
	$(BIN)/python -m contrasweep.tuning.tables.document docs

docs: $(DOCS_STAMP)  ## Build the documentation site: build/docs/index.html. A warning is an error.
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs build/docs

notebooks: $(DOCS_STAMP)  ## Execute the notebooks anew, for about ten minutes, and write them with their outputs.
	$(BIN)/python -m docs.executed_notebooks

$(DOCS_STAMP): $(STAMP)
	@# What the site needs is not needed to test, so it comes with the first `make docs`.
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable '.[docs]' \
	  || $(PIP) --constraint constraints.txt --editable '.[docs]'
	@touch $@

dist: $(STAMP)  ## Build sdist and wheel in dist/, and try the wheel in a fresh environment, away from here.
	rm -rf dist build/try
	$(BIN)/uv build --quiet --out-dir dist || ($(PIP) build && $(BIN)/python -m build --outdir dist)
	$(BIN)/python -m venv build/try/venv
	$(BIN)/uv pip install --quiet --python build/try/venv/bin/python --constraint constraints.txt dist/*.whl \
	  || build/try/venv/bin/pip install --quiet --constraint constraints.txt dist/*.whl
	@# -I: neither this folder nor PYTHONPATH is on the path; another working directory.
	cd build/try && for words in --version methods 'sweep fair-cclk --data colour-digits --trials 2 --dry-run'; do \
	  venv/bin/python -I -m contrasweep $$words > said || exit 1; tail -1 said; done
	rm -rf build/try

lowest: $(STAMP)  ## Write constraints-lowest.txt: the lowest versions that pyproject.toml allows.
	$(BIN)/python -m tests.architecture.lowest > constraints-lowest.txt

clean:  ## Remove the virtual environment, caches and demo results.
	rm -rf $(VENV) $(DEMO) build dist docs/api docs/commands .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
