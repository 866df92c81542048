# Four tiers: `make test` while you work, `make check` before you stop, `make ci` is what CI runs, and
# `make test-all` before a release. `make help` lists the rest.
# .venv is made once, and again when pyproject.toml changes or the checkout moves.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SECONDEXPANSION:

WORKERS ?= 2
# Of the tests, which also wait: for disks, timers and processes.
TEST_WORKERS ?= 4

VENV := .venv
PY := $(VENV)/bin/python
PYTEST := -m pytest -q -n $(TEST_WORKERS) --dist worksteal
# Hundreds of processes start in a run of the tests: none compiles again what one compiled, even
# where a container says that none may be kept.
export PYTHONDONTWRITEBYTECODE :=
# What .venv holds, each written when its installation succeeded: the path of the checkout it is for.
SETUP := $(VENV)/.setup
# A group of pyproject.toml, when a target asks for it.
group = $(VENV)/.group-$(1)
# The first of these that is 3.11 or later; PYTHON=/path/to/python3 chooses another.
PYTHON ?= $(shell for each in python3 python3.11 python3.12 python3.13 python3.14; do \
	"$$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$each" && break; \
	done)

# A moved checkout has an environment that points to the old place.
HERE := $(shell pwd -P)
moved = $(if $(findstring <$(HERE)>,<$(shell cat $(1) 2>/dev/null)>),,FORCE)

TARGETS := $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile)
.PHONY: $(TARGETS) FORCE

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r target text; do \
		printf '  make %-16s %s\n' "$$target" "$$text"; done

setup: $(SETUP) ## make .venv with the product alone

dev: $(call group,dev) ## and with what `make test` needs

$(SETUP): pyproject.toml $(call moved,$(SETUP))
	@$(call prepare,-e .)
	@pwd -P > $@

$(VENV)/.group-%: pyproject.toml $$(call moved,$(VENV)/.group-$$*)
	@$(call prepare,--group $* -e .)
	@for each in $* $(within-$*); do pwd -P > $(VENV)/.group-$$each; done; pwd -P > $(SETUP)

# The groups that one includes, so that they are not fetched again.
within-check := dev static site browser
within-ci := check package peers $(within-check)

# By uv, in half of pip's time: it is fetched where there is none. It does not read pip's
# configuration (a company's index, say): when it fails, pip has a go.
FETCH := pip install --quiet --compile-bytecode --python $(PY)
define prepare
if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "subagents needs Python 3.11 or later; found: $$(python3 --version 2>&1 || true)." >&2; \
		echo "Install it, or name it: make $(or $(MAKECMDGOALS),setup) PYTHON=/path/to/python3.11" >&2; exit 1; fi; \
	echo "Preparing .venv with $(PYTHON) (once): $(1)"; \
	if [ -e $(SETUP) ] && [ "$$(cat $(SETUP))" != "$$(pwd -P)" ]; then rm -rf $(VENV); fi; \
	rm -f $@; \
	{ command -v uv >/dev/null 2>&1 \
		&& { $(PY) -c '' 2>/dev/null || uv venv --quiet --python "$(PYTHON)" $(VENV); } \
		&& uv $(FETCH) $(1); } \
	|| { { $(PY) -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(VENV); } \
		&& { { [ -x $(VENV)/bin/uv ] || $(PY) -m pip install -qq --disable-pip-version-check 'uv>=0.9'; } \
			&& $(VENV)/bin/uv $(FETCH) $(1) 2>/dev/null; } \
		|| { $(PY) -m pip install -qq --disable-pip-version-check 'pip>=25.1' \
			&& $(PY) -m pip install -qq --disable-pip-version-check $(1); }; } \
	|| { echo "Preparing .venv failed. On Debian and Ubuntu: apt install python3-venv." >&2; exit 1; }
endef

demo: setup ## real work by a small fleet, without a model or a key
	@$(PY) -m subagents.cli.main demo

# -- the four tiers (tests/tiers.toml says which test is in which) --------------------------------

test: dev ## all quick tests, in a few minutes
	@$(PY) $(PYTEST)

check: ## before you stop: those, lint, types, layers, docs, browser, PostgreSQL, 400 seeds
	@$(PYTHON) -m scripts.gate check

ci: ## what CI runs: all that must never break, and the package
	@$(PYTHON) -m scripts.gate ci

test-all: export SEEDS = 2000
test-all: export OF_COMMIT = 1000
test-all: ## and the rest, an hour or two: every test, thousands of seeds, torture
	@$(PYTHON) -m scripts.gate all --record

soak: ## what takes a night: an hour of torture, fuzzing, real programs, clusters
	@$(PYTHON) -m scripts.gate soak

# What a tier needs, before its parts run beside each other: two installations would meet.
groups-check: $(call group,check)
groups-ci: $(call group,ci)

tests-check: $(call group,check)
	@$(PY) $(PYTEST) --tier check --durations 10

tests-ci: $(call group,ci)
	@$(PY) $(PYTEST) --tier ci --durations 10

tests-all: $(call group,ci) $(call group,temporal) $(call group,bench)
	@$(PY) $(PYTEST) --tier all --durations 10

test-near: dev ## the tests beside what you changed
	@near=$$($(PY) -m scripts.near) && $(PY) $(PYTEST) $$near || { [ -n "$$near" ] || echo "no test is near what changed" >&2; exit 1; }

core-alone: dev ## quick tests of what asks for extensions (configuration, API, commands, client) in a copy without any
	@$(PY) -m scripts.core_alone -n $(WORKERS) --dist worksteal

T ?=
TIMES ?= 200

flaky: dev ## a test again and again beside other load (T=tests/x/test_y.py::test_z TIMES=200)
	@$(PY) -m scripts.flaky --times $(TIMES) $(T)

# -- what they consist of -------------------------------------------------------------------------

static: $(call group,check) $(call group,static)
	@$(MAKE) --no-print-directory -k -j $(WORKERS) format-check lint types imports bandit

format-check: $(call group,static)
	$(PY) -m ruff format --check .

lint: $(call group,static)
	$(PY) -m ruff check .

types: $(call group,check)
	$(PY) -m mypy --strict src tests bench scripts

imports: $(call group,static)
	$(VENV)/bin/lint-imports
	@$(PY) -m scripts.house --check

house: dev ## what one must know: lines of the core and of each extension, imports, one run
	@$(PY) -m scripts.house

bandit: $(call group,static)
	$(PY) -m bandit -q -c pyproject.toml -r src scripts

SEEDS ?= 100
OF_COMMIT ?= 100

seeds: dev ## SEEDS=100 of each simulator, and those known to catch something: kills, failing hardware, several nodes on one database
	$(PY) -m tests.simulation.simulator --seeds $(SEEDS) --known --workers $(WORKERS)
	$(PY) -m tests.simulation.cluster_simulator --seeds $(SEEDS) --known --workers $(WORKERS)

seeds-of-commit: dev ## and OF_COMMIT=100 that are others at every commit
	$(PY) -m tests.simulation.simulator --seeds 0 --of-commit $(OF_COMMIT) --workers $(WORKERS)
	$(PY) -m tests.simulation.cluster_simulator --seeds 0 --of-commit $(OF_COMMIT) --workers $(WORKERS)

audit: $(call group,package) ## ask whether a package we depend on has a published vulnerability
	$(PY) -m scripts.audit

web: setup ## build the web page into the package, after a change in web/ (needs npm)
	$(PY) -m scripts.web_page

web-check: setup ## the page in the package is of web/: built again where there is npm
	@$(PY) -m scripts.web_page --check

web-pictures: web $(call group,browser) ## take the pictures of the page in docs/pictures anew (needs npm and Chromium)
	$(PY) -m scripts.web_pictures

release: $(call group,package) ## make dist/: wheel, sdist, bill of materials, manual page, completions, schemas, checksums
	$(PY) -m scripts.release

package: $(call group,package) ## make dist/, install its wheel with pip and uv, and run its demo from there
	$(PY) -m scripts.package_check

# What writes a part of a page, and with --check only says whether it is the one that is there.
GENERATED := config_reference extensions_page lifecycle_diagram alert_table spawn_parameters spawn_flags runtime_table_page \
	handshake_answers fault_table man_page code_tables plan_reference walkaway_picture green_page llms_txt

docs: dev $(call group,static) ## write the generated parts of docs/
	@for each in $(GENERATED); do $(PY) -m scripts.$$each || exit 1; done

docs-check: dev $(call group,static)
	@status=0; for each in $(GENERATED); do $(PY) -m scripts.$$each --check || status=1; done; exit $$status

first-day: dev ## the first day of a new user: install by uv, first result, nine jobs (needs uv and faketime; two minutes)
	$(PY) -m scripts.first_day

site: $(call group,site) ## build docs/ and the reference into site/; a link or an anchor that leads nowhere ends it with 1
	$(PY) -m scripts.docs_site

mutations: dev ## the first seed that catches each broken daemon (half an hour)
	$(PY) -m tests.simulation.mutation_search --workers $(WORKERS)

MINUTES ?=
SEED ?=
PARTS ?=

torture: $(call group,ci) ## real processes under kill -9, full disks and floods (MINUTES=60 SEED=… PARTS=…)
	@$(PY) -m tests.torture.run --minutes $(or $(MINUTES),60) --record \
		$(if $(SEED),--seed $(SEED)) $(if $(PARTS),--parts $(PARTS)); status=$$?; \
	$(PY) -m scripts.fault_table; exit $$status

torture-short: $(call group,ci) ## the same, which ends within ten minutes
	@$(PY) -m tests.torture.run --minutes 4 --within 10 $(if $(SEED),--seed $(SEED))

# CLUSTER_ROUNDS=2 CLUSTER_OUTAGE_S=10 make test-cluster: the same in a few minutes.
test-cluster: $(call group,ci) $(call group,temporal) ## several nodes on a real PostgreSQL, killed, frozen and cut off (an hour and a half)
	SUBAGENTS_REAL="$(REAL)" $(PY) -m tests.real.install codex
	SUBAGENTS_REAL="$(REAL)" $(PY) -m pytest -q -s --tier soak tests/extensions/cluster/nodes

test-deploy: $(call group,ci) $(call group,deploy) ## lint the Dockerfile, render the Helm chart and check its objects (fetches 410 MB once)
	$(PY) -m pytest -q --tier soak tests/deploy

demo-cluster: $(call group,temporal) ## three nodes on one machine, one killed with its workers (fetches PostgreSQL and Temporal)
	@$(PY) -m scripts.cluster_demo

CONFORMANCE ?= $(HOME)/.cache/subagents-conformance

conformance: dev ## the protocol's own suite and inspector against us (fetches 400 MB once)
	$(PY) -m tests.conformance.run "$(CONFORMANCE)"

PROGRAM ?= $(VENV)/bin/subagents
NODES ?= 1
KILLS ?= 20
ONLY ?= prefix,effects,fork,checkpoint,consume,recovery

conformance-resume: dev ## what resuming means: six properties under kill -9, from outside (NODES=3 SEED=7 ONLY=fork PROGRAM=…)
	@$(PY) -m tests.conformance_resume.run --program $(PROGRAM) --nodes $(NODES) --kills $(KILLS) \
		--only $(ONLY) $(if $(SEED),--seed $(SEED))

upgrade: dev ## a daemon of 0.1.0 with workers alive, taken over by this version
	$(PY) -m tests.upgrade.run

REAL ?= $(CURDIR)/.real
PROGRAMS ?=

test-real: $(call group,ci) ## our workers in the newest agent programs of npm (hundreds of MB; PROGRAMS="codex")
	SUBAGENTS_REAL="$(REAL)" $(PY) -m tests.real.install --newest $(PROGRAMS)
	SUBAGENTS_REAL="$(REAL)" $(PY) -m pytest -q --tier soak tests/real
	SUBAGENTS_REAL="$(REAL)" $(PY) -m tests.real.runtime_table --write $(PROGRAMS)

CLIENTS ?= $(CURDIR)/.clients

# `langchain-mcp-adapters` needs an older `mcp` than we do, so it cannot be in .venv.
test-clients: $(call group,ci) ## docs/howto/mcp-clients.md with LangGraph, too, in an environment of its own (170 MB)
	@[ -x "$(CLIENTS)/bin/python" ] || $(PY) -m venv "$(CLIENTS)"
	"$(CLIENTS)/bin/python" -m pip install -qq --disable-pip-version-check langchain langchain-anthropic langchain-mcp-adapters
	SUBAGENTS_CLIENTS="$(CLIENTS)" $(PY) -m pytest -q --tier soak tests/e2e/test_mcp_clients.py

runtime-table: $(call group,ci) ## the table of versions seen and its page, from the programs that are installed
	SUBAGENTS_REAL="$(REAL)" $(PY) -m tests.real.runtime_table --write $(PROGRAMS)

FUZZ ?=

fuzz: dev $(call group,fuzz) ## try every parser of what others write for MINUTES=5 each (FUZZ="http rows")
	$(PY) -m tests.fuzz $(FUZZ) --minutes $(or $(MINUTES),5)

bench: dev $(call group,bench) ## measure; results go to bench/results
	$(PY) -m bench

bench-web: web $(call group,check) ## measure the web page in a real browser (needs npm and Chromium)
	$(PY) -m bench --only p --rounds 3

format: $(call group,static) ## format and mend what can be mended
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

clean: ## remove all that make makes
	rm -rf $(VENV) build dist site .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .fuzz
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
