# What there is to do in this checkout. GNU make 3.81 and a POSIX shell suffice.

PYTHON   ?= python3
# cuda: torch for an NVIDIA card; cpu: torch without CUDA; auto: by what this machine has.
TORCH    ?= auto
DEMO     := models/starter/demo.wav
# System packages that tests use; the tests that need a missing one say so.
PACKAGES := flite espeak-ng libasound2-plugins chromium libportaudio2 pulseaudio pulseaudio-utils \
            haproxy redis-server

BIN := .venv/bin
PIP := $(BIN)/python tools/install.py
# The tests compare results, not speed: one thread gives the same sums on every machine.
TEST_ENV := OMP_NUM_THREADS=1 PYRIGHT_PYTHON_IGNORE_WARNINGS=1 PYTHONDONTWRITEBYTECODE=
PYTEST := $(TEST_ENV) $(BIN)/pytest

.DEFAULT_GOAL := help
.PHONY: help setup llama demo check test test-full clients cluster lint types format docs packages clean

help: ## list what can be done
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

setup: .venv/base ## install voiceloop into .venv
	@echo "voiceloop is installed: $(BIN)/voiceloop --help"

llama: .venv/base ## compile llama.cpp for this processor: reads a third faster with AVX-512
	@$(BIN)/python tools/llama.py

demo: .venv/base ## answer a bundled spoken question: reply.wav, trace.json
	@$(BIN)/voiceloop ask $(DEMO) --play --out reply.wav --trace trace.json

check: .venv/test ## lint, check types of what is not committed, test what needs no models: for every save
	@$(MAKE) --no-print-directory --jobs 3 lint new-types quick

.PHONY: new-types
new-types: .venv/test
	@{ git diff --name-only --diff-filter=d HEAD -- '*.py'; git ls-files --others --exclude-standard -- '*.py'; } \
	  | $(TEST_ENV) xargs -r $(BIN)/pyright --pythonpath $(BIN)/python

.PHONY: quick
quick: .venv/test
	@$(PYTEST) --quiet -m "(pure or virtual) and not slow and not full" --hypothesis-profile quick \
	  --numprocesses logical

test: packages lint ## lint, check types, run all tests
	@$(MAKE) --no-print-directory --keep-going --jobs 2 timed types computed

# Where programs compete for the processors, sound has gaps, and answers are late. So the
# types and what only computes run at the lowest priority, and of the rest one kind follows another.
COMPUTED := pure or virtual or models
AT_ONCE  := --numprocesses auto --maxprocesses 4

.PHONY: timed
timed: .venv/test
	@status=0; \
	for tests in tests/card "tests/browser --numprocesses 2" \
	    "--ignore tests/card --ignore tests/browser $(AT_ONCE)"; do \
	  $(PYTEST) -m "not full and not ($(COMPUTED))" $$tests || status=1; \
	done; exit $$status

.PHONY: computed
computed: .venv/test
	@printed=$$(nice -n 19 env $(PYTEST) -m "not full and ($(COMPUTED))" $(AT_ONCE) 2>&1); \
	status=$$?; echo "$$printed"; exit $$status

test-full: packages .venv/test ## the whole grids of the properties of decoding; minutes
	@$(PYTEST) -m full --timeout 0

clients: .venv/base .clients/installed ## let stock clients of the Realtime API hold a conversation each
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.clients.run

cluster: packages .venv/test .cluster/installed ## kill and replace replicas on a Ray cluster of this machine; minutes
	@OMP_NUM_THREADS=1 $(BIN)/pytest --timeout 600 tests/cluster

lint: .venv/test ## check style
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/vulture
	@$(BIN)/python -m tools.size

types: .venv/test ## check types
	@nice -n 19 env $(TEST_ENV) $(BIN)/pyright --project pyproject.toml --pythonpath $(BIN)/python

format: .venv/test ## put code into the house format
	@$(BIN)/ruff check --fix --quiet
	@$(BIN)/ruff format

docs: .venv/test ## write the generated pages of docs/
	@$(BIN)/python -m tools.configuration
	@$(BIN)/python -m tools.protocol

clean: ## remove all that was installed or written here
	rm -rf .venv .clients .cluster .pytest_cache .ruff_cache .hypothesis reply.wav trace.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

packages:
	@sh tools/packages.sh $(PACKAGES) || true

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  "voiceloop needs Python 3.11 or newer, and $(PYTHON) is %d.%d. Name another one: make $(MAKECMDGOALS) PYTHON=python3.12" \
	  % sys.version_info[:2])'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || sh tools/packages.sh python3-venv
	@$(PYTHON) -m venv .venv

.venv/base: pyproject.toml constraints.txt $(wildcard packs/*/pyproject.toml) | .venv/bin/python
	@echo "installing voiceloop into .venv (the first time takes a few minutes)"
	@$(PIP) --torch $(TORCH) -c constraints.txt -e '.[bench,convert]' -e packs/lang-de -e packs/lang-es
	@touch $@

.venv/test: .venv/base
	@echo "installing the tools for tests into .venv"
	@$(PIP) -c constraints.txt -e '.[convert,dev,train]' -e packs/parallel
	@touch $@

.cluster/installed: pyproject.toml constraints.txt tests/cluster/requirements.txt
	@echo "installing Ray into .cluster (a few minutes)"
	@$(PYTHON) -m venv .cluster
	@.cluster/bin/pip --quiet --disable-pip-version-check install -c constraints.txt -e '.[scale,redis]'
	@.cluster/bin/pip --quiet --disable-pip-version-check install -r tests/cluster/requirements.txt
	@.cluster/bin/pip --quiet --disable-pip-version-check install --no-deps vllm==0.33.0
	@touch $@

.clients/installed: tests/clients/requirements.txt tests/clients/package.json tests/clients/package-lock.json
	@command -v npm >/dev/null || sh tools/packages.sh npm
	@echo "installing the clients into .clients (the first time takes a minute or two)"
	@$(PYTHON) -m venv .clients
	@.clients/bin/pip --quiet --disable-pip-version-check install -r tests/clients/requirements.txt
	@cp tests/clients/package.json tests/clients/package-lock.json .clients
	@cd .clients && npm ci --silent --no-audit --no-fund
	@touch $@
