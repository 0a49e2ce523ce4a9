# Two commands: `make demo` and `make test`. Everything they need is set up in $(VENV); a second run is quick.
SHELL  := /bin/bash
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
TOOLS  := $(shell find tools_cache -type f \( -path "tools_cache/tools/*" -o -path "tools_cache/prompt_texts/*" -o -name "*.py" \) -not -path "*/__pycache__/*" 2>/dev/null)
REGISTRY := tools_cache/tool_registry.json

.PHONY: demo test all-tests test-all test-python vm-test lint types bench lens-sheet hear-sheet fuzz conformance foreign-tests soak chaos chaos-tests chaos-slice story-tests registry mosquitto dovecot liblc3 install uninstall wheels deb deb-test clean
.DEFAULT_GOAL := help

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: $(VENV)/.demo $(REGISTRY)  ## everything on this machine: mock glasses, a small cloud, the daemon
	@$(BIN)/glassd demo $(ARGS)

test: $(VENV)/.dev $(REGISTRY) mosquitto dovecot liblc3 lint  ## every check
	@$(MAKE) --no-print-directory --jobs=2 types all-tests

# Minutes of kills under load: `make chaos-tests` runs them, and .ci/run with its small storm.
KILLS := tests/chaos/test_backlog.py tests/chaos/test_harness.py tests/chaos/test_heavy.py tests/chaos/test_mail_kills.py tests/chaos/test_pager_kills.py \
  tests/chaos/test_power_cut.py tests/e2e/test_uplink_backlog.py
# Minutes of everyday tools at their servers and of all that they show, of glasses families, of recognised speech, and of rough hands:
# `make story-tests` and .ci/run.
STORIES := tests/scenarios/everyday tests/scenarios/families tests/scenarios/voice tests/unit/tools/mail tests/unit/checks/test_everyday_lens.py tests/e2e/test_secrets.py \
  tests/e2e/test_rough_hands.py

all-tests: $(VENV)/.compiled
	@$(BIN)/python -m tests.second_chance --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder $(KILLS:%=--ignore=%) $(STORIES:%=--ignore=%) $(ARGS)

# Each of the workers that run the tests would compile every test file; done once, while mypy runs, it costs a quarter of that.
# What cannot be compiled is reported by the run that follows.
$(VENV)/.compiled: $(VENV)/.dev $(REGISTRY)
	@$(BIN)/python -m pytest --collect-only --quiet >/dev/null; touch $@

test-all:  ## `make test` on Python 3.11, 3.12 and 3.13, each in its own venv
	@GLASSD_EXAMPLES=300 .ci/each-python test 3.11 3.12 3.13

# What may differ between Pythons: asyncio and how it cleans up (link, MQTT, control, MCP servers, the daemon's own parts),
# SQLite's binding (storage), how packages are found and built (packaging, imports), annotations that are read at run time (mcp,
# tools_cache), and some of it end to end. Codecs, rules and texts compute: no Python makes a difference there.
MAY_DIFFER := $(addprefix tests/unit/,calls cloud commands config control daemon firmware_bridge link mcp observability packaging runtime storage tools tools_cache) \
  $(addprefix tests/e2e/test_,demo.py mqtt_traps.py tls.py) tests/link tests/test_imports.py

test-python: $(VENV)/.dev $(REGISTRY) mosquitto dovecot liblc3  ## of `make test` what may differ between Pythons (PYTHON=python3.13 VENV=.venv-3.13)
	@$(BIN)/python -m tests.second_chance --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder $(MAY_DIFFER) $(ARGS)

lint: $(VENV)/.dev
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .

types: $(VENV)/.dev
	@$(BIN)/mypy --no-error-summary

conformance: $(VENV)/.dev $(REGISTRY)  ## MCP judged by strangers: the official suite both ways, the Inspector as an agent (needs npm)
	@$(BIN)/python -m tests.conformance $(ARGS)

# Hosts and simulators of others ask for versions that contradict each other and ours: they are installed without their
# dependencies, beside $(VENV), whose packages and checkout this environment sees too.
FOREIGN := $(VENV)-foreign
FOREIGN_LIST := tests/foreign/requirements.txt
PURELIB := import sysconfig; print(sysconfig.get_path("purelib"))

foreign-tests: $(FOREIGN)/.ready $(REGISTRY) liblc3  ## software of others at our simulated glasses, and our driver at their simulators (ARGS="-k omi")
	@$(FOREIGN)/bin/python -m pytest --numprocesses=4 tests/foreign $(ARGS)

$(FOREIGN)/.ready: $(FOREIGN_LIST) $(VENV)/.dev
	@echo "setting up $(FOREIGN)"
	@$(BIN)/python -m venv --clear $(FOREIGN)
	@echo "import site; site.addsitedir('$$($(BIN)/python -c '$(PURELIB)')')" >"$$($(FOREIGN)/bin/python -c '$(PURELIB)')/glassd_dev.pth"
	@$(FOREIGN)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement $(FOREIGN_LIST)
	@touch $@

bench: $(VENV)/.dev $(REGISTRY) mosquitto  ## numbers of this machine, each beside its baseline (ARGS="--compare ../other": two checkouts)
	@$(BIN)/python -m benchmarks.run $(ARGS)

lens-sheet: $(VENV)/.dev $(REGISTRY)  ## contact sheets of what is on the lens in 200 situations and more, into lens-sheet-out (ARGS="--only hebrew")
	@$(BIN)/python -m tests.lens_sheet $(ARGS)

hear-sheet: $(VENV)/.dev $(REGISTRY)  ## how many of 100 spoken sentences become the right call, and what a radio sets off (ARGS="--every 5 --radio 0")
	@$(BIN)/python -m tests.hearing_eval $(ARGS)

soak: $(VENV)/.dev $(REGISTRY) mosquitto  ## an hour of mixed load; says what grows (ARGS="--seconds 300" for less)
	@$(BIN)/python -m benchmarks.soak --out soak-out $(ARGS)

fuzz: $(VENV)/.dev $(REGISTRY)  ## 1,000,000 changed packets for the codec of every model, in both roles (ARGS="--packets 10000 --only even")
	@$(BIN)/python -m tests.fuzz $(ARGS)

chaos: $(VENV)/.dev $(REGISTRY) mosquitto  ## 1,000 kills in 11,000 calls, judged by strangers, 300 of them under heavy load; 1,000 faults of the link; 200 power cuts
	@$(BIN)/python -m tests.chaos --kills 700 --calls 11000 --heavy 300 --links 1000 $(ARGS)
	@POWER_CUTS=200 $(BIN)/python -m pytest -q tests/chaos/test_power_cut.py

chaos-tests: $(VENV)/.dev $(REGISTRY) mosquitto  ## a daemon killed while hundreds of calls wait: none is lost, none is done twice
	@$(BIN)/python -m tests.second_chance --numprocesses=2 --dist=loadfile $(KILLS) $(ARGS)

story-tests: $(VENV)/.dev $(REGISTRY) mosquitto dovecot liblc3  ## everyday tools at their servers, by voice, command line and MCP; all families of glasses; recognised speech; rough hands
	@$(BIN)/python -m tests.second_chance --numprocesses=4 --dist=loadfile --no-loadscope-reorder $(STORIES) $(ARGS)

chaos-slice: chaos-tests
	@$(BIN)/python -m tests.chaos --seed 1 --kills 48 --calls 800 --heavy 5 --links 30 $(ARGS)

vm-test: $(VENV)/.dev $(REGISTRY)  ## the link and the unit on real BlueZ and systemd, in a virtual machine (ARGS="--suite trixie --quick")
	@$(BIN)/python -m tests.vm $(ARGS)

registry: $(REGISTRY)
$(REGISTRY): $(TOOLS) | $(VENV)/.demo
	@$(BIN)/python -m tools_cache.build

# The end-to-end story against Debian's broker needs it installed; where we may not install it those tests skip, loudly.
mosquitto:
	@if ! PATH=$$PATH:/usr/sbin command -v mosquitto >/dev/null; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing mosquitto for the broker tests"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mosquitto mosquitto-clients >/dev/null; \
	  else echo "NOTE: mosquitto is not installed: its tests will be skipped (apt-get install mosquitto mosquitto-clients)"; fi; fi

# The mail tools are tried on a real IMAP server; the tests run one of their own, as the user that runs them.
dovecot:
	@if ! PATH=$$PATH:/usr/sbin command -v dovecot >/dev/null; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing dovecot for the tests of mail"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends dovecot-imapd >/dev/null; \
	  else echo "NOTE: dovecot is not installed: its tests will be skipped (apt-get install dovecot-imapd)"; fi; fi

# An Even G1's microphone sends LC3. liblc3-dev has the same name in every Debian and brings the library.
liblc3:
	@if ! $(PYTHON) -B -c 'from firmware_bridge.lc3 import why_not; raise SystemExit(bool(why_not()))'; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing liblc3 for the tests of an Even G1's microphone"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends liblc3-dev >/dev/null; \
	  else echo "NOTE: liblc3 is not installed: the tests of an Even G1's microphone will be skipped (apt-get install liblc3-dev)"; fi; fi

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("glassd needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.11")'
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)

# The registry is compiled while the package is built, so what compiles it comes first.
$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	@$(PIP) hatchling jsonschema-rs msgspec pydantic rfc8785
	@$(PIP) --no-build-isolation --editable '.[sim,devcloud,voice,mcp,scripts]'
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	@$(PIP) --no-build-isolation --editable '.[sim,devcloud,voice,mcp,scripts,ears,ears-sherpa,dev]'
	@touch $@

# What an installation is made of: systemd/packaging/. SYSTEM_PYTHON is the machine's own, which runs the daemon.
PREFIX ?= /usr/local
DESTDIR ?=
WHEELS ?=
PURGE ?=
SUITES ?=
ARCH ?=
SYSTEM_PYTHON ?= /usr/bin/python3
EXTRAS ?= calendar,contacts,sim,devcloud,ears,enrol,images,mcp,voice,metrics,scripts,web
INSTALLER = $(PYTHON) -B systemd/packaging/install.py

install:  ## onto this machine, as root: venv in /opt/glassd, unit, command (PREFIX, DESTDIR, WHEELS, SYSTEM_PYTHON)
	@$(INSTALLER) install --prefix '$(PREFIX)' --destdir '$(DESTDIR)' --wheels '$(WHEELS)' --python '$(SYSTEM_PYTHON)' --extras '$(EXTRAS)'

uninstall:  ## remove it; state and settings stay (PURGE=1 removes them too)
	@$(INSTALLER) uninstall --destdir '$(DESTDIR)' $(if $(PURGE),--purge)

wheels:  ## everything `make install` needs, into WHEELS (dist/wheels), for a machine without a network
	@$(INSTALLER) wheels --wheels '$(or $(WHEELS),dist/wheels)' --python '$(SYSTEM_PYTHON)' --extras '$(EXTRAS)'

deb:  ## Debian packages into dist/, one a suite (SUITES="bookworm trixie", ARCH=arm64, WHEELS)
	@$(PYTHON) -B systemd/packaging/deb.py $(SUITES) --arch '$(ARCH)' --wheels '$(WHEELS)'

deb-test: deb  ## install, run, upgrade and purge each package of this machine's architecture on a clean Debian (root, mmdebstrap)
	@systemd/packaging/deb-test $(or $(SUITES),bookworm trixie)

clean:  ## remove what the targets above made
	rm -rf .venv .venv-* $(REGISTRY) .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-out hear-sheet-out soak-out .node conformance-out
