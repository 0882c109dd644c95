# Every target sets up .venv when it is missing or older than what it is made from.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PLUGINS := $(wildcard plugins/*/)
# Those with extras first: pip finds what the others need of them only after it has seen them. The plugin of envpool comes
# without envpool, some 700 MB; tests that need it are skipped.
EDITABLE := -e .[test,parity] -e plugins/rlcore-plugin-agents[onnx,safetensors] -e plugins/rlcore-plugin-reports[plot] \
	-e plugins/rlcore-plugin-gymnasium[mujoco,classic-control,box2d,highway,minatar,minigrid] \
	-e plugins/rlcore-plugin-assistants[mcp] -e plugins/rlcore-plugin-jax[gymnax] -e plugins/rlcore-plugin-notebook[test] \
	-e plugins/rlcore-plugin-pettingzoo[mpe] -e plugins/rlcore-plugin-share[fsspec,hub] \
	$(addprefix -e ,$(filter-out %agents/ %assistants/ %envpool/ %gymnasium/ %jax/ %notebook/ %pettingzoo/ %reports/ %share/,\
	$(PLUGINS)))
PEERS := .venv-peers
JAX := .venv-jax
# on a machine with a GPU: beside the torch that it has, and what the benchmarks and tests there need
GPU := .venv-gpu
GPU_PLUGINS := $(addprefix -e plugins/rlcore-plugin-,agents cnn compile csv datasets device dqn gradient gymnasium health mlp \
	ppo pqn presets recurrent replay rollout sac testing[test] torch torch-envs transforms)
# one thread per test process: more only wait for each other
export OMP_NUM_THREADS ?= 1
# the processes that tests start would each compile all of rlcore
unexport PYTHONDONTWRITEBYTECODE
# where memory is a folder of 4 GB that programs may lie in, tests write there: they wait for no disk at their syncs
MEMORY := $(shell grep ' /dev/shm tmpfs ' /proc/mounts 2> /dev/null | grep -qv noexec \
	&& df -Pk /dev/shm | awk 'NR == 2 && $$4 > 4000000 {print $$6}')
# one more than the cores that there are at least: many a test waits for a process or a clock, and leaves its core idle
WORKERS := 3
# the some hundred warnings of libraries are not printed
PYTEST := TMPDIR=$(or $(MEMORY),$(TMPDIR),/tmp) $(BIN)/python -m pytest --disable-warnings

.PHONY: train test test-slow test-floors lint bench gpu readme-figures docs dist clean

train: $(STAMP)
	$(BIN)/rlcore train examples/ppo-idp.toml --set run.name=ppo-idp-$$(date +%Y%m%d-%H%M%S)

test: $(STAMP) lint
	$(PYTEST) -q -m "not slow" -n $(WORKERS) --dist worksteal --durations 20

test-slow: $(STAMP)
	$(PYTEST) -q -m slow -n $(WORKERS) --dist worksteal --durations 50

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -n 2

bench: $(STAMP) $(PEERS)/.installed
	$(BIN)/python benchmarks/bench.py --peers-python $(PEERS)/bin/python

# All that a GPU is asked which is to be had for minutes: set up, tests on it, benchmarks; nine minutes in all.
gpu: $(GPU)/.installed
	$(GPU)/bin/python benchmarks/gpu.py

# Where the net cannot be reached, what is there has to do.
$(GPU)/.installed: $(wildcard plugins/*/pyproject.toml)
	$(PYTHON) -m venv --system-site-packages $(GPU)
	-$(GPU)/bin/python -m pip install -qq --retries 0 'setuptools>=77' wheel
	$(GPU)/bin/python -m pip install -qq --retries 0 --no-build-isolation -e .[test] $(GPU_PLUGINS) pytest-xdist \
		|| $(GPU)/bin/python -m pip install -qq --no-deps --no-build-isolation -e . $(GPU_PLUGINS)
	touch $@

# the pictures of the README and of docs/; needs Chromium
readme-figures: $(STAMP)
	$(BIN)/python benchmarks/readme_figures.py

docs: $(STAMP) $(VENV)/.docs
	$(BIN)/python docs/reference/generate.py
	$(BIN)/sphinx-build -q -n -W --keep-going -b html docs docs/_build/html

$(VENV)/.docs: $(STAMP) constraints.txt
	$(BIN)/python -m pip install -qq -c constraints.txt furo myst-parser sphinx sphinx-copybutton sphinx-design
	touch $@

# Trains, stops and resumes with the lowest versions that are declared; VERSIONS=--latest for the latest ones.
test-floors: $(STAMP)
	$(BIN)/python tests/floors.py $(VERSIONS)

# what setuptools left in build/ would end up in the wheels, also files that are gone
dist: $(STAMP) $(VENV)/.dist
	rm -rf dist build plugins/*/build
	printf '%s\n' . $(PLUGINS) | xargs -P 2 -I {} $(BIN)/python -m build --no-isolation --skip-dependency-check --outdir dist {} > /dev/null
	rm -rf build plugins/*/build
	$(BIN)/python -m twine check --strict dist/*

$(VENV)/.dist: $(STAMP) constraints.txt
	$(BIN)/python -m pip install -qq -c constraints.txt build twine
	touch $@

$(STAMP): pyproject.toml constraints.txt $(wildcard plugins/*/pyproject.toml)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq -c constraints.txt pip setuptools wheel
	$(BIN)/python -m pip install -qq -c constraints.txt torch
	$(BIN)/python -m pip install -qq -c constraints.txt --no-build-isolation $(EDITABLE) \
		mypy pytest-xdist ruff
	$(BIN)/python -m pip install -qq --no-deps --no-build-isolation -e plugins/rlcore-plugin-envpool
	touch $@

$(PEERS)/.installed: benchmarks/requirements-peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install -qq torch==2.13.0
	$(PEERS)/bin/python -m pip install -qq -r benchmarks/requirements-peers.txt
	$(PEERS)/bin/python -m pip install -qq --no-deps --ignore-requires-python cleanrl==1.2.0
	touch $@

$(JAX)/.installed: benchmarks/requirements-jax.txt
	$(PYTHON) -m venv $(JAX)
	$(JAX)/bin/python -m pip install -qq -r benchmarks/requirements-jax.txt
	touch $@

clean:
	rm -rf $(VENV) $(PEERS) $(JAX) $(GPU) docs/_build build dist plugins/*/build .mypy_cache .pytest_cache .ruff_cache
