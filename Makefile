# `make run` and `make test` are the two commands; everything they need they set up themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SHIM := limiter/libvgpushare.so
SHIM_SOURCES := $(shell find limiter/src limiter/arbiter -type f) $(wildcard limiter/build/*.py)
SIMGPU_SOURCES := $(shell find simgpu -name '*.[ch]') $(wildcard simgpu/*.py)

# One more than processors, because some of the fast tests wait. The slow ones depend on real time.
TEST_PROCESSES ?= $(shell n=$$(nproc); echo $$((n < 8 ? n + 1 : 8)))
SLOW_TEST_PROCESSES ?= 2
E2E_CLUSTERS ?= 2
# Major version of containerd in `make cluster`: 1 is Debian's 1.6, 2 is built. The tests read VGPU_E2E_CONTAINERD.
CONTAINERD ?= 1
ONLY_FAILED := --last-failed --last-failed-no-failures none
ARCHITECTURES ?= $(shell uname -m)

# Bytecode is kept in build/, also where the environment says that none is written: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache

.DEFAULT_GOAL := help
.PHONY: help run test test-failed test-heavy test-heavy-failed test-slow test-slow-failed stress check format cluster e2e e2e-failed e2e-walk e2e-images gpu gpu-cluster gpu-e2e gpu-pack docs wheel images krew release lock lock-images clean

help: ## This list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

run: $(VENV)/.run ## The whole control plane on this machine with simulated GPUs, until Ctrl-C
	@$(BIN)/python -m vgpu.simulator

test: $(VENV)/.dev $(SHIM) build/simgpu/.done ## The fast tests: no root, no cluster, no GPU
	$(BIN)/python -m pytest --ignore tests/contract -n $(TEST_PROCESSES) --dist worksteal

test-failed: $(VENV)/.dev $(SHIM) build/simgpu/.done ## The tests that failed in the last `make test` once more, one at a time
	$(BIN)/python -m pytest $(ONLY_FAILED)

test-heavy: $(VENV)/.dev $(SHIM) build/simgpu/.done ## The tests that start whole programs or try thousands of cases
	$(BIN)/python -m pytest -m heavy -n $(TEST_PROCESSES) --dist worksteal

test-heavy-failed: $(VENV)/.dev $(SHIM) build/simgpu/.done ## The tests that failed in the last `make test-heavy` once more, one at a time
	$(BIN)/python -m pytest -m heavy $(ONLY_FAILED)

test-slow: $(VENV)/.dev $(SHIM) build/simgpu/.done ## The tests that depend on real time or run under sanitizers
	$(BIN)/python -m pytest -m slow --timeout 300 -n $(SLOW_TEST_PROCESSES) --dist loadfile

test-slow-failed: $(VENV)/.dev $(SHIM) build/simgpu/.done ## The tests that failed in the last `make test-slow` once more, one at a time
	$(BIN)/python -m pytest -m slow --timeout 300 $(ONLY_FAILED)

stress: $(VENV)/.dev $(SHIM) build/simgpu/.done ## FILE=tests/...: a test file twenty times beside two busy loops; which tests fail
	$(BIN)/python -m tests.stress $(FILE)

check: $(VENV)/.dev $(SHIM) ## Everything that reads the code: linters, types, import rules, C build
	@$(MAKE) --no-print-directory --keep-going --output-sync -j $(shell nproc) $(CHECKS)

# The longest first, so that none of them runs alone at the end.
CHECKS := check-types check-limiter check-contract check-imports check-simgpu check-style check-tables
.PHONY: $(CHECKS)
$(CHECKS): $(VENV)/.dev $(SHIM)

check-types:
	$(BIN)/mypy

check-limiter:
	$(BIN)/python -m limiter.build check

check-contract:
	$(BIN)/python -m pytest -q tests/contract

check-imports:
	$(BIN)/lint-imports

check-simgpu:
	$(BIN)/python -m simgpu.build check

check-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check-tables:
	$(BIN)/python -m benchmarks.report --check

format: $(VENV)/.dev ## Format Python and C in place
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/python -m limiter.build format
	$(BIN)/python -m simgpu.build format

cluster: $(VENV)/.dev $(SHIM) build/simgpu/.done ## A real Kubernetes cluster here with vgpushare installed (root), until Ctrl-C
	$(BIN)/python -m cluster --containerd $(CONTAINERD)

e2e: $(VENV)/.dev $(SHIM) build/simgpu/.done ## The suite on real clusters, E2E_CLUSTERS=2 at a time (root)
	$(BIN)/python -m pytest -m "e2e and not images" -n $(E2E_CLUSTERS) --dist loadfile --no-loadscope-reorder tests/e2e

e2e-failed: $(VENV)/.dev $(SHIM) build/simgpu/.done ## The tests that failed in the last `make e2e` once more, one cluster at a time (root)
	$(BIN)/python -m pytest -m "e2e and not images" $(ONLY_FAILED) tests/e2e

e2e-walk: $(VENV)/.dev $(SHIM) build/simgpu/.done ## Five minutes of random actions and faults on a cluster of its own (root)
	$(BIN)/python -m pytest -m slow_cluster tests/e2e/walk

e2e-images: $(VENV)/.dev $(SHIM) build/simgpu/.done ## The same with all parts as pods: images, installation, upgrade, uninstallation (root)
	$(BIN)/python -m pytest -m "e2e and images" tests/e2e

gpu: $(VENV)/.dev $(SHIM) build/simgpu/.done ## The suite on a real NVIDIA GPU
	$(BIN)/python -m pytest -m gpu tests benchmarks/tests

gpu-cluster: $(VENV)/.dev $(SHIM) build/simgpu/.done ## `make cluster` with this machine's NVIDIA cards (root); a Python with PyTorch: VGPU_GPU_PYTHON
	$(BIN)/python -m cluster.gpu_machine

gpu-e2e: $(VENV)/.dev $(SHIM) build/simgpu/.done ## The suite of a cluster with this machine's NVIDIA cards (root); a Python with PyTorch: VGPU_GPU_PYTHON
	CI=true $(BIN)/python -m pytest -m gpu_cluster tests/gpu_cluster

gpu-pack: $(VENV)/.dev $(SHIM) build/simgpu/.done ## What a GPU machine without network needs for these two, into build/gpu-pack (root)
	$(BIN)/python -m cluster.gpu_machine.pack

docs: build/docs/.done ## The documents as a searchable site, into dist/site; fails at a link that leads nowhere
	NO_MKDOCS_2_WARNING=1 build/docs/bin/mkdocs build --quiet --strict
	@echo "dist/site/index.html"

build/docs/.done: requirements/docs.lock
	$(PYTHON) -m venv build/docs
	build/docs/bin/python -m pip install -q --no-compile --require-hashes --only-binary :all: -r $<
	@touch $@

wheel: $(VENV)/.dev ## The distribution for this architecture, into dist/
	$(BIN)/hatchling build -t wheel

images: $(VENV)/.dev ## An OCI archive for each part, into dist/images; ARCHITECTURES="x86_64 aarch64" for both
	$(BIN)/python -m images build dist/images --architecture $(ARCHITECTURES)

krew: $(VENV)/.dev ## The kubectl plugin's archive and its manifest, into dist/krew; URL=... is where it will be published
	$(BIN)/python -m release.krew dist/krew $(URL)

# An empty SIGNING_KEY is passed on, and refused: a build whose key is missing must not end without a signature.
release: $(VENV)/.dev build/docs/.done ## Everything that a publisher uploads, into dist/release; URL=... is where krew's archive will be published, SIGNING_KEY=... a GnuPG key
	rm -rf dist/release
	$(BIN)/python -m release dist/release $(if $(URL),--krew-url $(URL)) $(if $(filter undefined,$(origin SIGNING_KEY)),,--signing-key "$(SIGNING_KEY)")

lock: $(VENV)/.dev ## Resolve pyproject.toml into the lock files again
	$(BIN)/uv pip compile pyproject.toml --extra cluster --universal --python-version 3.11 --generate-hashes --no-header -q -o requirements/run.lock
	$(BIN)/uv pip compile pyproject.toml --extra node -c requirements/run.lock --universal --python-version 3.11 --generate-hashes --no-header -q -o requirements/node.lock
	$(BIN)/python -m images lock-wheels
	$(BIN)/uv pip compile pyproject.toml --extra cluster --group dev --universal --python-version 3.11 --generate-hashes --no-header -q -o requirements/dev.lock
	$(BIN)/uv pip compile --group docs --universal --python-version 3.11 --generate-hashes --no-header -q -o requirements/docs.lock

lock-images: $(VENV)/.dev ## Pin the newest Debian packages of the images
	$(BIN)/python -m images lock

clean: ## Remove what was built here
	rm -rf $(VENV) build dist limiter/*.so

# Of an older Python pip would say only that it finds no version of some package, and the environment would stay.
OLDEST_PYTHON := import sys; \
	sys.version_info < (3, 11) and sys.exit("Python " + sys.version.split()[0] + " is too old: name 3.11 or newer, as in make run PYTHON=python3.12")

$(BIN)/python:
	@$(PYTHON) -c '$(OLDEST_PYTHON)'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.run: requirements/run.lock | $(BIN)/python
	@echo "installing packages into $(VENV), once; the list below shows how far it is"
	$(BIN)/python -m pip install --progress-bar off --no-compile --require-hashes --only-binary :all: -r $<
	@touch $@

$(VENV)/.dev: requirements/dev.lock | $(BIN)/python
	$(BIN)/python -m pip install -q --no-compile --require-hashes --only-binary :all: -r $<
	@touch $@ $(VENV)/.run

$(SHIM): $(SHIM_SOURCES) $(VENV)/.dev
	$(BIN)/python -m limiter.build

build/simgpu/.done: $(SIMGPU_SOURCES) $(VENV)/.dev
	$(BIN)/python -m simgpu.build build/simgpu
	@touch $@
