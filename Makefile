# `make check` is what a laptop, a hook and CI run. `make help` lists the rest.
# .venv is made once, and again when pyproject.toml changes or the checkout moves.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

WORKERS ?= 2
# Of the tests, which also wait: for disks, timers and processes.
TEST_WORKERS ?= 3
SEEDS ?= 2000
SMOKE_SEEDS ?= 500

VENV := .venv
PY := $(VENV)/bin/python
PYTEST := -m pytest -q -n $(TEST_WORKERS) --dist worksteal
# Hundreds of processes start in a run of the tests: none compiles again what one compiled, even
# where a container says that none may be kept.
export PYTHONDONTWRITEBYTECODE :=
# What .venv holds, each written when its installation succeeded: the path of the checkout it is for.
SETUP := $(VENV)/.setup
DEV := $(VENV)/.dev
EVERYTHING := -e '.[dev,bench]'
# The first of these that is 3.11 or later; PYTHON=/path/to/python3 chooses another.
PYTHON ?= $(shell for each in python3 python3.11 python3.12 python3.13 python3.14; do \
	"$$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$each" && break; \
	done)

# A moved checkout has an environment that points to the old place.
HERE := $(shell pwd -P)
moved = $(if $(findstring <$(HERE)>,<$(shell cat $(1) 2>/dev/null)>),,FORCE)

.PHONY: help setup dev temporal web test-web web-pictures demo test check static quick format-check lint types imports bandit audit package sbom pytest smoke docs docs-check site \
	torture torture-short simulate simulate-cluster test-cluster test-deploy demo-cluster mutations conformance first-day upgrade test-real test-clients runtime-table fuzz bench bench-web format clean FORCE

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r target text; do \
		printf '  make %-12s %s\n' "$$target" "$$text"; done

setup: $(SETUP) ## make .venv with the product alone

dev: $(DEV) ## and with all that developing and testing it needs

temporal: dev ## and with Temporal's client and its development server (200 MB)
	@$(call add,bench-temporal)

$(SETUP): pyproject.toml $(call moved,$(SETUP))
	@$(call prepare,-e .)
	@pwd -P > $@

$(DEV): pyproject.toml $(call moved,$(DEV))
	@$(call prepare,$(EVERYTHING))
	@pwd -P > $@; pwd -P > $(SETUP)

# uv where there is one, but it does not read pip's configuration (a company's index, say): when
# it fails, pip has a go.
define prepare
if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "subagents needs Python 3.11 or later; found: $$(python3 --version 2>&1 || true)." >&2; \
		echo "Install it, or name it: make $(or $(MAKECMDGOALS),setup) PYTHON=/path/to/python3.11" >&2; exit 1; fi; \
	echo "Preparing .venv with $(PYTHON) (once)"; \
	for stamp in $(SETUP) $(DEV); do \
		if [ -e $$stamp ] && [ "$$(cat $$stamp)" != "$$(pwd -P)" ]; then rm -rf $(VENV); fi; done; \
	rm -f $@; \
	{ command -v uv >/dev/null 2>&1 \
		&& { $(PY) -c '' 2>/dev/null || uv venv --quiet --python "$(PYTHON)" $(VENV); } \
		&& uv pip install --quiet --python $(PY) $(1); } \
	|| { { $(PY) -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(VENV); } \
		&& $(PY) -m pip install -qq --disable-pip-version-check $(1); } \
	|| { echo "Preparing .venv failed. On Debian and Ubuntu: apt install python3-venv." >&2; exit 1; }
endef

# What a target needs besides.
define add
{ command -v uv >/dev/null 2>&1 && uv pip install --quiet --python $(PY) -e '.[$(1)]'; } \
	|| $(PY) -m pip install -qq --disable-pip-version-check -e '.[$(1)]'
endef

demo: setup ## real work by a small fleet, without a model or a key
	@$(PY) -m subagents.cli.main demo

test: pytest smoke ## all default tests

pytest: dev
	$(PY) $(PYTEST)

test-web: web ## the web page in a real browser (needs npm and Chromium)
	$(PY) $(PYTEST) -m "thorough or not thorough" tests/web tests/test_bench.py

web-pictures: web ## take the pictures of the page in docs/pictures anew (needs npm and Chromium)
	$(PY) -m scripts.web_pictures

smoke: dev
	$(PY) -m tests.simulation.simulator --seeds $(SMOKE_SEEDS) --workers $(WORKERS)

check: static test docs-check site simulate-cluster torture-short ## all that must hold before a commit

static: dev
	@$(MAKE) --no-print-directory -j $(WORKERS) format-check lint types imports bandit

quick: static docs-check site ## what is quick to check while you work
	$(PY) $(PYTEST) tests/domain tests/config tests/test_*.py

format-check: dev
	$(PY) -m ruff format --check .

lint: dev
	$(PY) -m ruff check .

types: dev
	$(PY) -m mypy --strict src tests bench scripts

imports: dev
	$(VENV)/bin/lint-imports

bandit: dev
	$(PY) -m bandit -q -c pyproject.toml -r src scripts

audit: dev ## ask whether a package we depend on has a published vulnerability
	$(PY) -m scripts.audit

web: dev ## build the web page into the package (needs npm; the API works without it)
	$(PY) -m scripts.web_page

package: dev ## build the wheel, install it with pip and uv, and run its demo from there
	$(PY) -m scripts.package_check

sbom: dev ## the packages of a fresh installation, in CycloneDX, below dist/
	$(PY) -m scripts.package_check --sbom

docs: dev ## write the generated parts of docs/
	$(PY) -m subagents.config.schema --write docs/configuration.md
	$(PY) -m scripts.lifecycle_diagram docs/lifecycle.md
	$(PY) -m scripts.alert_table docs/alerts.md
	$(PY) -m scripts.spawn_parameters
	$(PY) -m scripts.flag_table
	$(PY) -m scripts.runtime_table_page
	$(PY) -m scripts.requirements_page docs/requirements.md
	$(PY) -m scripts.handshake_answers
	$(PY) -m scripts.fault_table
	$(PY) -m scripts.man_page
	$(PY) -m scripts.cli_reference
	$(PY) -m scripts.http_reference
	$(PY) -m scripts.code_tables
	$(PY) -m scripts.plan_reference
	$(PY) -m scripts.python_reference
	$(PY) -m scripts.walkaway_picture
	$(PY) -m scripts.llms_txt

docs-check: dev
	$(PY) -m subagents.config.schema --check docs/configuration.md
	$(PY) -m scripts.lifecycle_diagram --check docs/lifecycle.md
	$(PY) -m scripts.alert_table --check docs/alerts.md
	$(PY) -m scripts.spawn_parameters --check
	$(PY) -m scripts.flag_table --check
	$(PY) -m scripts.runtime_table_page --check
	$(PY) -m scripts.requirements_page --check docs/requirements.md
	$(PY) -m scripts.handshake_answers --check
	$(PY) -m scripts.fault_table --check
	$(PY) -m scripts.man_page --check
	$(PY) -m scripts.cli_reference --check
	$(PY) -m scripts.http_reference --check
	$(PY) -m scripts.code_tables --check
	$(PY) -m scripts.plan_reference --check
	$(PY) -m scripts.python_reference --check
	$(PY) -m scripts.walkaway_picture --check
	$(PY) -m scripts.llms_txt --check

first-day: dev ## the first day of a new user: install by uv, first result, nine jobs (needs uv and faketime; two minutes)
	$(PY) -m scripts.first_day

site: dev ## build docs/ into site/; a link or an anchor that leads nowhere ends it with 1
	$(VENV)/bin/zensical build --strict --clean
	@cd docs && find . -name '*.md' -exec cp --parents {} ../site/ \;  # what llms.txt names

simulate: dev ## the engine against seeded crashes, failing hardware, late and doubled signals
	$(PY) -m tests.simulation.simulator --seeds $(SEEDS) --workers $(WORKERS)

CLUSTER_SEEDS ?= 2000

simulate-cluster: dev ## several engines on one simulated database, against seeded kills, freezes and cuts
	$(PY) -m tests.simulation.cluster_simulator --seeds $(CLUSTER_SEEDS) --workers $(WORKERS)

mutations: dev ## the first seed that catches each broken daemon (half an hour)
	$(PY) -m tests.simulation.mutation_search --workers $(WORKERS)

MINUTES ?=
SEED ?=
PARTS ?=

torture: dev ## real processes under kill -9, full disks and floods (MINUTES=60 SEED=… PARTS=…)
	@$(PY) -m tests.torture.run --minutes $(or $(MINUTES),60) --record \
		$(if $(SEED),--seed $(SEED)) $(if $(PARTS),--parts $(PARTS)); status=$$?; \
	$(PY) -m scripts.fault_table; exit $$status

torture-short: dev ## the same, which ends within ten minutes
	@$(PY) -m tests.torture.run --minutes 4 --within 10 $(if $(SEED),--seed $(SEED))

# CLUSTER_ROUNDS=2 CLUSTER_OUTAGE_S=10 make test-cluster: the same in a few minutes.
test-cluster: temporal ## several nodes on a real PostgreSQL, killed, frozen and cut off (an hour and a half)
	SUBAGENTS_REAL="$(REAL)" $(PY) -m tests.real.install codex
	SUBAGENTS_REAL="$(REAL)" $(PY) -m pytest -q -s -m "thorough or not thorough" tests/cluster

test-deploy: dev ## render the Helm chart and check its objects (fetches 360 MB once)
	@$(call add,deploy)
	$(PY) -m pytest -q -m "thorough or not thorough" tests/deploy

demo-cluster: dev ## three nodes on one machine, one killed with its workers (fetches PostgreSQL and Temporal)
	@$(PY) -m scripts.cluster_demo

CONFORMANCE ?= $(HOME)/.cache/subagents-conformance

conformance: dev ## the protocol's own suite and inspector against us (fetches 400 MB once)
	$(PY) -m tests.conformance.run "$(CONFORMANCE)"

upgrade: dev ## a daemon of 0.1.0 with workers alive, taken over by this version
	$(PY) -m tests.upgrade.run

REAL ?= $(CURDIR)/.real
PROGRAMS ?=

test-real: dev ## our workers in the newest agent programs of npm (hundreds of MB; PROGRAMS="codex")
	SUBAGENTS_REAL="$(REAL)" $(PY) -m tests.real.install --newest $(PROGRAMS)
	SUBAGENTS_REAL="$(REAL)" $(PY) -m pytest -q -m real tests/real
	$(PY) -m pytest -q -m thorough tests/e2e
	SUBAGENTS_REAL="$(REAL)" $(PY) -m tests.real.runtime_table --write $(PROGRAMS)

CLIENTS ?= $(CURDIR)/.clients

# `langchain-mcp-adapters` needs an older `mcp` than we do, so it cannot be in .venv.
test-clients: dev ## docs/howto/mcp-clients.md with LangGraph, too, in an environment of its own (170 MB)
	@[ -x "$(CLIENTS)/bin/python" ] || $(PY) -m venv "$(CLIENTS)"
	"$(CLIENTS)/bin/python" -m pip install -qq --disable-pip-version-check langchain langchain-anthropic langchain-mcp-adapters
	SUBAGENTS_CLIENTS="$(CLIENTS)" $(PY) -m pytest -q -m 'real or not real' tests/e2e/test_mcp_clients.py

runtime-table: dev ## the table of versions seen and its page, from the programs that are installed
	SUBAGENTS_REAL="$(REAL)" $(PY) -m tests.real.runtime_table --write $(PROGRAMS)

TARGETS ?=

fuzz: dev ## try every parser of what others write for MINUTES=5 each (TARGETS="http rows")
	$(PY) -m tests.fuzz $(TARGETS) --minutes $(or $(MINUTES),5)

bench: dev ## measure; results go to bench/results
	$(PY) -m bench

bench-web: web ## measure the web page in a real browser (needs npm and Chromium)
	$(PY) -m bench --only p --rounds 3

format: dev ## format and mend what can be mended
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

clean: ## remove all that make makes
	rm -rf $(VENV) build dist site .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .fuzz
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
