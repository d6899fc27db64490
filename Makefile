# `make demo` shows Allmende at work, `make test` checks everything; both install what they need into VENV first.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := test

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Traces, prices and the case bank; read only.
ALLMENDE_SHARED ?= ../shared
export ALLMENDE_SHARED

LOCK := uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
	--no-header --no-emit-index-url --no-emit-find-links --no-annotate $(if $(UPGRADE),--upgrade)

.PHONY: setup test lint demo prove format lock clean

setup: $(VENV)/.installed

# uv is used where it is present because it is faster; both ways refuse a file whose hash is not in the list.
$(VENV)/.pinned: requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "allmende needs Python 3.11 or newer; '$(PYTHON)' is not. Try: make setup PYTHON=python3.13" >&2; exit 1; }
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	if command -v uv >/dev/null; then \
		uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt; \
	else \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt; \
	fi
	touch $@

# The package itself, editable; needs no network because the build backend is among the pinned packages.
$(VENV)/.installed: $(VENV)/.pinned pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation -e .
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src bench
	$(BIN)/lint-imports --no-logo

test: lint
	$(BIN)/python -m pytest -q

demo: setup
	$(BIN)/allmende demo $(if $(CHECK),--check)

prove: setup
	$(BIN)/python -m bench.prove

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Pins what pyproject.toml asks for; UPGRADE=1 takes the newest versions. Needs uv on the PATH (pip install uv).
lock:
	$(LOCK) pyproject.toml --output-file requirements/base.txt
	$(LOCK) pyproject.toml --extra analysis --group dev --constraint requirements/base.txt --output-file requirements/dev.txt

clean:
	rm -rf $(VENV) .venv-3.13 build dist results .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +
