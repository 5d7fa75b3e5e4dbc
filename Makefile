# `make demo` and `make test` do everything on a fresh machine; both set the environment up first.

PY := .venv/bin/python
STAMP := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help setup run demo test test-fast check gated compiled simulate nightly lint surface test-clients test-real test-versions test-shipped test-strangers drift soak test-faults test-fleet fuzz clis record bench dist lock clean

help: ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) ## make .venv with everything pinned; PYTHON=/path/to/python3.12 chooses the interpreter

$(STAMP): requirements.lock pyproject.toml packages/synapsed-fleet/pyproject.toml scripts/setup
	@PYTHON="$(PYTHON)" scripts/setup

run: $(STAMP) ## the daemon in the foreground
	@$(PY) -m synapsed run

demo: $(STAMP) ## a daemon, two agents, a message from one to the other
	@$(PY) examples/demo.py

test: $(STAMP) ## the gate's tests, but for slow ones and those with a browser, a broker, a wheel or a service manager; one turn on the real programs (make clis)
	@$(PY) -m tests.runs.gate

test-fast: $(STAMP) ## the rooms without daemons, a few drawn examples each, nothing slow: within a minute
	@$(PY) -m tests.runs.gate fast

check: $(STAMP) ## the gate: format, lint, types, contracts, tests, one turn on the installed real programs; CHANGED=1 or CHANGED=REV: what a change can reach
	@$(MAKE) --no-print-directory -j2 lint gated

gated: $(if $(CHANGED),$(STAMP),compiled) # beside lint, which takes one core for a minute
	@env -u MAKEFLAGS -u MFLAGS $(PY) -m tests.runs.gate $(if $(CHANGED),changed $(if $(filter 1,$(CHANGED)),HEAD,$(CHANGED)),all)

nightly: $(STAMP) ## what the gate leaves out, section by section, as far as no result of the cache counts; SECTION=soak MINUTES=60
	@$(PY) -m tests.runs.night $(if $(SECTION),--section $(SECTION)) $(if $(MINUTES),MINUTES=$(MINUTES)) $(if $(KILLS),KILLS=$(KILLS)) $(if $(MESSAGES),MESSAGES=$(MESSAGES))

compiled: $(STAMP) # the tests' assertions rewritten once: each worker would do it again
	@-$(PY) -m tests.runs.gate compile

simulate: $(STAMP) ## the real kernel on a simulated machine: the story of SEED=17 (SHRINK=1: and of the least that fails), or SEEDS=0:2000; SERVED=1: with servers
	@PYTHONHASHSEED=0 $(PY) -m tests.simulation.run $(if $(SEEDS),--seeds $(SEEDS),$(or $(SEED),0)) $(if $(SHRINK),--shrink) $(if $(SERVED),--served)

lint: $(STAMP) ## format, lint, types, import contracts
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	$(PY) -m mypy
	.venv/bin/lint-imports --no-cache

surface: $(STAMP) ## write the outside of the product down in surface/: API, verbs, events, configuration, codes, databases
	@$(PY) -m scripts.surface

clis: $(STAMP) ## install the pinned agent programs, clients of A2A and ACP, and a terminal, from npm and PyPI, into the cache
	@$(PY) -m tests.real.programs install
	@$(PY) -m tests.clients.programs install
	@$(PY) -m tests.real.editors install
	@$(PY) -m tests.terminal.headless install

test-real: $(STAMP) clis ## everything on the real agent programs
	@$(PY) -m tests.real.run

test-versions: $(STAMP) clis ## older versions of the agent programs, back to six months: one row a version
	@$(PY) -m tests.real.versions install
	@$(PY) -m tests.real.run -q -rs tests/real/test_versions.py

test-shipped: $(STAMP) clis ## the programs whose profiles are shipped besides the four: one row a program
	@$(PY) -m tests.real.shipped install
	@$(PY) -m tests.real.run -q -rs tests/real/test_shipped.py

drift: $(STAMP) clis ## the newest release of each program, against its profile and its recordings: one page; PROGRAM="codex qwen" REPORT=FILE INTO=FOLDER
	@$(PY) -m tests.drift $(PROGRAM) $(if $(REPORT),--report $(REPORT)) $(if $(INTO),--into $(INTO))

test-strangers: $(STAMP) clis ## programs that no profile was written for: their menus, and those of the ACP registry
	@$(PY) -m tests.real.strangers install
	@$(PY) -m tests.real.libraries install
	@$(PY) -m tests.real.shipped install
	@$(PY) -m tests.real.acp_programs install
	@$(PY) -m tests.real.run -q -rs tests/real/test_strangers.py tests/real/test_acp_programs.py tests/real/test_libraries.py tests/real/test_unasked.py

test-clients: $(STAMP) clis ## agent frameworks (CrewAI, Google ADK, …) as A2A clients of a daemon; installs them, 3 GB
	@$(PY) -m tests.clients.programs frameworks
	@$(PY) -m pytest -q tests/clients

soak: $(STAMP) clis ## one hour of real agents, strangers, people, dialogs, interrupts, kills and a clock that jumps; MINUTES=60 SEED=N OLDER=2
	@$(PY) -m tests.real.versions install
	@$(PY) -m tests.real.strangers install
	@$(PY) -m tests.real.soak --minutes $(or $(MINUTES),60) $(if $(SEED),--seed $(SEED)) --older $(or $(OLDER),2)

test-faults: $(STAMP) ## the fault suite: kills, full disks, reboots, counted
	@$(PY) -m pytest -q -m faults tests/faults

test-fleet: $(STAMP) ## the fleet over real brokers: kills at each step and at random, full disks, losses of power, forgeries; KILLS=100 MESSAGES=50000
	@FLEET_EVERY=1 FLEET_KILLS=$(or $(KILLS),100) FLEET_MESSAGES=$(or $(MESSAGES),50000) \
	  $(PY) -m pytest -q -rs -m "fleet or not fleet" tests/parts/fleet tests/service/test_broker_unit.py

fuzz: $(STAMP) ## the tests with drawn examples, at random, again and again; keeps what it finds; MINUTES=10
	@$(PY) -m tests.fuzz --minutes $(or $(MINUTES),10)

record: $(STAMP) clis ## record real runs again (tests/recordings)
	@$(PY) -m tests.real.record

bench: $(STAMP) ## the bars of docs/benchmarks.md, side by side with peers
	@$(PY) -m bench

dist: $(STAMP) ## wheels, sdists and bills of materials in dist/, built twice and compared
	@$(PY) scripts/dist

lock: ## write requirements.lock again from both pyproject.toml
	$(PY) -m pip install -q 'uv>=0.9,<1'
	$(PY) -m scripts.sbom needs | .venv/bin/uv pip compile --quiet --universal --python-version 3.12 --generate-hashes --extra dev --extra bench --extra otel \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' -o requirements.lock pyproject.toml -
	.venv/bin/uv pip compile --quiet --universal --python-version 3.12 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' \
	  -o tests/clients/pypi/requirements.lock tests/clients/pypi/requirements.in
	$(PY) -m scripts.sbom # licences.toml
	for name in tests/clients/frameworks/*.in; do \
	  .venv/bin/uv pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-emit-index-url \
	    --no-emit-find-links --custom-compile-command 'make lock' -o "$${name%.in}.lock" "$$name" || exit 1; done

clean: ## remove what is built
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
