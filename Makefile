# Everything a fresh machine needs is Python 3.11, Java 17 and make.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The lock is the whole answer. A resolver beside it would look for a package's extras (`sqlalchemy[asyncio]`) as a requirement of its
# own, find a release newer than the lock and refuse it for its missing hash: a lock that breaks whenever somebody publishes.
AS_LOCKED := --no-deps --require-hashes
PIN := .causeway/uv/bin/uv pip compile --generate-hashes --python-version 3.11 --no-header --no-annotate -q

.PHONY: help setup check docs coverage test test-fast prove soak bench bench-repack fuzz demo demo-failover demo-down browser lock clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(VENV)/.ready ## Python environment and Kafka's jars, once
	@$(BIN)/python -m causeway.lab.jars kafka-4.3.1 kafka-3.9.2 mirror-client-4.3.1

$(VENV)/.ready: requirements.txt pyproject.toml
	@echo "setup: Python environment in $(VENV) (two minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@echo "setup: installing the packages of requirements.txt, with hashes (Spark and Airflow are large; pip is silent)"
	@$(BIN)/pip install -q $(AS_LOCKED) -r requirements.txt
	@echo "setup: installing causeway itself, in development mode"
	@$(BIN)/pip install -q --no-deps --no-build-isolation -e .
	@$(BIN)/pip check
	@touch $@

lock: ## requirements.in -> requirements.txt, and its part that images install; pinned with hashes
	@$(PYTHON) -m venv .causeway/uv
	@.causeway/uv/bin/pip install -q uv
	@$(PIN) requirements.in -o requirements.txt
	@$(PIN) requirements-runtime.in -o requirements-runtime.txt -c requirements.txt

check: setup ## format, lint, types, layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: setup ## the pages of docs/ that are made from the code, written again
	@$(BIN)/python -m tests.golden.pages

# Chance is fixed there, so that the number is the same each time.
COVERED := tests/unit/core tests/unit/flows tests/property tests/golden/test_surface.py tests/golden/test_simulation.py
coverage: setup ## the branches of core that its tests take; refuses to fall below the floor in pyproject.toml
	@CAUSEWAY_DIGESTS_SEED=1 $(BIN)/coverage run -m pytest -q -p no:xdist --hypothesis-seed=0 $(COVERED)
	@$(BIN)/coverage report

WORKERS ?= 2
test: setup ## format, lint, types, layers and coverage of core, then every test
	@$(MAKE) --no-print-directory check && echo "test: format, lint, types and layers are right after $$SECONDS s"
	@$(MAKE) --no-print-directory coverage && echo "test: coverage of core is what it was, after $$SECONDS s"
	@scratch=$$(mktemp -d -t causeway-test.XXXXXX); \
	echo "test: logs and data are in $$scratch until all is green"; \
	TMPDIR=$$scratch $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder && rm -rf "$$scratch"; \
	red=$$?; echo "test: the tests took $$SECONDS s"; exit $$red

test-fast: setup ## the tests without a broker, a JVM or many seeds: about a minute
	@$(BIN)/pytest -q -n $(WORKERS) --dist loadfile -m "not (integration or spark or airflow or chaos)" --ignore=tests/simulation

prove: setup ## every promise in full size, alone on its machine: hours; writes docs/proof.md
	@$(BIN)/python -m tests.prove

HOURS ?= 1
SEED ?=
REPORT ?= .causeway/soak
soak: setup ## faults on three nodes for HOURS=n [SEED=n], then the proof; writes REPORT.md and REPORT.json (.causeway/soak)
	@$(BIN)/python -m tests.chaos.soak --hours $(HOURS) --report $(REPORT) $(if $(SEED),--seed $(SEED))

SCALE ?= 1
WORKLOADS ?=
bench: setup ## beside MirrorMaker 2, an hour, alone on its machine; SCALE=0.02 for a look, WORKLOADS=plain,lz4
	@$(BIN)/python -m causeway.lab.jars mirror-maker-4.3.1
	@$(BIN)/python -m tests.bench.bench --scale $(SCALE) --workloads "$(WORKLOADS)"
	@$(if $(WORKLOADS),,$(BIN)/python -m tests.groups.beside --scale $(SCALE))
	@$(if $(WORKLOADS)$(filter-out 1,$(SCALE)),,$(BIN)/python -m tests.failover.pace)

browser: setup ## what drives a browser for the part ui of make prove; the Chromium is the machine's own
	@$(PYTHON) -m venv .causeway/browser
	@.causeway/browser/bin/pip install -q $(AS_LOCKED) -r tests/ui/requirements.txt

bench-repack: setup ## repack alone on one core, two minutes; writes docs/repack.md
	@$(BIN)/python -m tests.bench.repack_speed

MINUTES ?= 10
fuzz: setup ## the batch decoder against damage of every kind, for MINUTES=10
	@$(BIN)/python -m tests.property.fuzz --minutes $(MINUTES)

demo: setup ## two clusters, Airflow and Spark: a mirror at work, and the proof
	@$(BIN)/python -m causeway.entrypoints.demo up

demo-failover: setup ## the demo's second act: sf dies, and its consumers go on on nyc
	@$(BIN)/python -m causeway.entrypoints.demo failover

demo-down: ## stop what the demo left running
	@$(BIN)/python -m causeway.entrypoints.demo down

clean: ## stop what the demo or the lab left running; forget the environment, the jars and the lab's data
	@if [ -x $(BIN)/causeway ]; then $(BIN)/python -m causeway.entrypoints.demo down; $(BIN)/causeway lab down; fi
	@rm -rf $(VENV) .causeway
