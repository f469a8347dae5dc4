# `make demo` trains a real model in a real environment; `make test` runs the tests. Both set everything up first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test install lint clean

demo: $(VENV)/.demo
	$(BIN)/farhorizon train recipes/quickstart.toml

test: $(VENV)/.dev
	$(BIN)/python -m pytest

install: $(VENV)/.dev
	@echo "ready: . $(BIN)/activate, then: farhorizon --help"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The stamps hold what was installed: nothing is fetched again until pyproject.toml changes.
$(VENV)/.demo: pyproject.toml | $(VENV)/.torch
	$(BIN)/python -m pip install --quiet -e '.[demo]'
	$(BIN)/farhorizon model fetch smollm2-135m-instruct
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.torch
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@

# The CPU build where the package index offers it (a tenth of the size), otherwise the default build.
$(VENV)/.torch:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet 'torch==2.13.0+cpu' 2>/dev/null || $(BIN)/python -m pip install --quiet 'torch==2.13.0'
	@$(BIN)/python -c 'import warnings; warnings.simplefilter("ignore"); import torch; print("installed torch", torch.__version__, "(CUDA %s)" % torch.version.cuda if torch.version.cuda else "(CPU build)")'
	@touch $@

clean:
	rm -rf $(VENV) build src/farhorizon.egg-info
