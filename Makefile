# A new machine needs Python 3.11, Java 17 and make.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pip installs the lock without a resolver. A resolver would take a package's extra (`sqlalchemy[asyncio]`) for a requirement
# of its own, find a release newer than the lock, and refuse it for its missing hash.
AS_LOCKED := --no-deps --require-hashes
PIN := .causeway/uv/bin/uv pip compile --generate-hashes --python-version 3.11 --no-header --no-annotate -q

.PHONY: help setup check docs coverage test test-fast prove soak bench bench-repack fuzz demo demo-failover demo-down browser lock clean

help: ## list what make can do
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(VENV)/.ready ## install the Python environment and Kafka's jars, once
	@$(BIN)/python -m causeway.lab.jars kafka-4.3.1 kafka-3.9.2 mirror-client-4.3.1
	@$(BIN)/python -m causeway.lab.class_archive 4.3.1 3.9.2

$(VENV)/.ready: requirements.txt pyproject.toml
	@echo "setup: Python environment in $(VENV) (two minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@echo "setup: installing the packages of requirements.txt, with hashes (Spark and Airflow are large; pip is silent)"
	@$(BIN)/pip install -q $(AS_LOCKED) -r requirements.txt
	@echo "setup: installing causeway itself, in development mode"
	@$(BIN)/pip install -q --no-deps --no-build-isolation -e .
	@$(BIN)/pip check
	@touch $@

lock: ## write requirements.txt and requirements-runtime.txt again, with hashes
	@$(PYTHON) -m venv .causeway/uv
	@.causeway/uv/bin/pip install -q uv
	@$(PIN) requirements.in -o requirements.txt
	@$(PIN) requirements-runtime.in -o requirements-runtime.txt -c requirements.txt

check: setup ## check format, lint, types and layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: setup ## write the pages of docs/ that are made from the code
	@$(BIN)/python -m tests.golden.pages

# Chance is fixed there, so that the number is the same each time.
COVERED := tests/unit/core tests/unit/usecases tests/unit/property tests/golden/test_surface.py tests/golden/test_simulation.py
coverage: setup ## measure the branch coverage of core; fails below the floor in pyproject.toml
	@CAUSEWAY_DIGESTS_SEED=1 $(BIN)/coverage run -m pytest -q -p no:xdist --hypothesis-seed=0 $(COVERED)
	@$(BIN)/coverage report

WORKERS ?= 3
test: setup ## run the checks and the coverage of core side by side, then every test
	@($(MAKE) --no-print-directory check && echo "test: format, lint, types and layers are right after $$SECONDS s") & \
	check=$$!; red=0; \
	$(MAKE) --no-print-directory coverage && echo "test: coverage of core is what it was, after $$SECONDS s" || red=1; \
	wait $$check && exit $$red
	@scratch=$$(mktemp -d -t causeway-test.XXXXXX); \
	echo "test: logs and data are in $$scratch until all is green"; \
	TMPDIR=$$scratch $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder && rm -rf "$$scratch"; \
	red=$$?; echo "test: the tests took $$SECONDS s"; exit $$red

test-fast: setup ## run the tests that need no broker, no JVM and few seeds (a minute)
	@$(BIN)/pytest -q -n $(WORKERS) --dist loadfile -m "not (integration or spark or airflow or chaos)" --ignore=tests/simulation

prove: setup ## prove every promise in full size, alone on the machine (hours); writes docs/proof.md
	@$(BIN)/python -m tests.proofs.prove

HOURS ?= 1
SEED ?=
REPORT ?= .causeway/soak
soak: setup ## play faults on three nodes for HOURS=n [SEED=n], then prove; writes REPORT.md and .json (.causeway/soak)
	@$(BIN)/python -m tests.proofs.chaos.soak.soak --hours $(HOURS) --report $(REPORT) $(if $(SEED),--seed $(SEED))

SCALE ?= 1
WORKLOADS ?=
bench: setup ## measure beside MirrorMaker 2, alone on the machine (an hour); SCALE=0.02 for a try, WORKLOADS=plain,lz4
	@$(BIN)/python -m causeway.lab.jars mirror-maker-4.3.1
	@$(BIN)/python -m tests.bench.bench --scale $(SCALE) --workloads "$(WORKLOADS)"
	@$(if $(WORKLOADS),,$(BIN)/python -m tests.integration.groups.compare_mm2 --scale $(SCALE))
	@$(if $(WORKLOADS)$(filter-out 1,$(SCALE)),,$(BIN)/python -m tests.integration.failover.trials.pace)

browser: setup ## install what drives a browser for the part ui of make prove; Chromium must be installed
	@$(PYTHON) -m venv .causeway/browser
	@.causeway/browser/bin/pip install -q $(AS_LOCKED) -r tests/airflow/ui/requirements.txt

bench-repack: setup ## measure repack alone on one core (two minutes); writes docs/repack.md
	@$(BIN)/python -m tests.bench.repack_speed

MINUTES ?= 10
fuzz: setup ## give the batch decoder damaged bytes, for MINUTES=10
	@$(BIN)/python -m tests.unit.property.fuzz --minutes $(MINUTES)

demo: setup ## start two clusters, Airflow and Spark; mirror, then compare every record
	@$(BIN)/python -m causeway.demo.mirror up

demo-failover: setup ## kill sf in the running demo; its consumers continue on nyc
	@$(BIN)/python -m causeway.demo.mirror failover

demo-down: ## stop what the demo left running
	@$(BIN)/python -m causeway.demo.mirror down

clean: ## stop the demo and the lab; delete the environment, the jars and the lab's data
	@if [ -x $(BIN)/causeway ]; then $(BIN)/python -m causeway.demo.mirror down; $(BIN)/causeway lab down; fi
	@rm -rf $(VENV) .causeway
