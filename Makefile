# Every target makes what it needs: a virtual environment under this checkout, once.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test test-long check lint format types wheel clean

help: ## say what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/installed ## the main job in a minute: no key, no network
	@$(BIN)/reasoning-store demo

test: $(VENV)/installed-dev ## the tests
	@$(BIN)/python -m pytest -q -n auto

test-long: $(VENV)/installed-dev ## the tests, the slow durability ones in full
	@$(BIN)/python -m pytest -q -n auto -m "long or not long"

check: lint types test ## everything that must be green before a commit

lint: $(VENV)/installed-dev ## style and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(VENV)/installed-dev ## put the style right where that can be done by itself
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: $(VENV)/installed-dev ## strict types, tests included
	@$(BIN)/mypy

wheel: $(VENV)/installed-dev ## build it, install it alone, run the demo from elsewhere
	@$(BIN)/python tools/try_wheel.py

clean: ## forget what was made here
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Some systems ship Python without the part that puts pip into a new environment; pip itself
# can do that from outside.
$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit("reasoning-store needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { \
	  rm -rf $(VENV) && $(PYTHON) -m venv --without-pip $(VENV) && \
	  $(PYTHON) -m pip --disable-pip-version-check --python $(BIN)/python install --quiet pip; }
	@touch $@

$(VENV)/installed: $(VENV)/made pyproject.toml
	@echo 'installing reasoning-store into $(VENV) ...'
	@$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/installed-dev: $(VENV)/made pyproject.toml
	@echo 'installing reasoning-store and its tools into $(VENV) ...'
	@$(PIP) install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/installed
