# `make demo` shows Fluence at work, `make test` runs all tests. A machine needs only Python 3.11 and make. Everything
# else is installed into .venv/ or built from source once into ~/.cache/fluence.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

PYTHON ?= python3
BIN := .venv/bin
# Created last, so that an interrupted installation is repeated.
INSTALLED := .venv/.installed

.PHONY: help demo cluster cluster-down test check format bench requirements venv clean

help: ## This list.
	@echo "Fluence: a group of pods starts together or not at all."; echo
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) \
	  | while IFS='|' read -r target words; do printf '  make %-14s %s\n' "$$target" "$$words"; done
	@echo; echo 'Options: PYTHON=python3.12 (which Python), KEEP=1 (demo), ARGS="..." (test, cluster, bench).'

demo: $(INSTALLED) ## Start a real control plane, run gangs on it, show what happens. KEEP=1 keeps it running.
	@$(BIN)/python -m devcluster.demo

cluster: $(INSTALLED) ## Start a control plane with Fluence in it; the last line printed is its kubeconfig.
	@$(BIN)/python -m devcluster up $(ARGS)

cluster-down: $(INSTALLED) ## End that control plane.
	@$(BIN)/python -m devcluster down

test: $(INSTALLED) ## Run every test; tests of behaviour run on a real control plane.
	@$(BIN)/python -m devcluster build
	@$(BIN)/python -m devcluster build --kubernetes 1.36
	@$(BIN)/python -m pytest -n 2 --dist loadgroup $(ARGS)

check: $(INSTALLED) ## Check lint, format, imports between packages, and types.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

format: $(INSTALLED) ## Format the code.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(INSTALLED) ## Measure binding, matching and memory, and compare with kube-scheduler's gangs.
	@$(BIN)/python -m devcluster build
	@$(BIN)/python -m bench $(ARGS)

# uv.lock records addresses of registries, so it is not committed.
requirements: $(INSTALLED) ## Pin the newest versions that pyproject.toml allows, with hashes.
	@$(BIN)/python -m pip install --quiet uv
	@rm -rf build/requirements && mkdir -p build/requirements && cp pyproject.toml README.md LICENSE build/requirements
	cd build/requirements && ../../$(BIN)/uv lock --quiet --python ../../$(BIN)/python
	cd build/requirements && ../../$(BIN)/uv export --quiet --frozen --no-emit-project --no-header \
	  -o ../../requirements/run.txt
	cd build/requirements && ../../$(BIN)/uv export --quiet --frozen --no-emit-project --no-header --extra dev \
	  -o ../../requirements/dev.txt

venv: $(INSTALLED) ## Only install everything into .venv.

clean: ## Remove what was built in this folder (not ~/.cache/fluence).
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# --no-deps: the list is complete (`pip check` confirms it), and an older pip looks for the newest version of a
# package that is required with an extra, although the list pins another.
$(INSTALLED): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "$(PYTHON) is missing or older than 3.11: install a newer one, or name it, as in" \
	    "make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments: on Debian, apt-get install python3-venv" >&2; exit 1; }
	@echo "[1/3] a virtual environment in .venv"
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	@echo "[2/3] packages into it, with checked hashes (about a minute)"
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --no-deps -r requirements/dev.txt
	@echo "[3/3] this checkout itself"
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
	@$(BIN)/python -m pip check --disable-pip-version-check
	@touch $@
