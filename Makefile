# make setup      builds .venv once, and anew after an interruption or when pins change
# make reproduce  trains and compares six models on short ListOps
# make test       lints and tests
# make test-fast  the same without what is slow, for the change in hand
# make test-all   the same with what takes long

# The first that can make environments: Debian ships Python without that part, and version
# managers leave names that start nothing.
PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13, \
  $(shell $(name) -c "import ensurepip, venv" >/dev/null 2>&1 && echo $(name))))
NO_PYTHON := Install Python 3.11, 3.12 or 3.13 with its venv module \
  (Debian, Ubuntu: apt install python3-venv; macOS: brew install python@3.12), \
  or name one: make PYTHON=/path/to/python3.12
BIN := .venv/bin
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Names of marks hold a checksum of the pins: a checkout gives files new times.
PINS := $(firstword $(shell cat requirements.txt requirements-dev.txt constraints.txt | cksum))
INSTALLED := .venv/installed-$(PINS)
INSTALLED_DEV := $(INSTALLED)-dev
RUNS ?= runs/reproduce
# Three files of tests at a time, of which some wait; WORKERS= for one.
WORKERS ?= --numprocesses=3 --dist=loadfile --no-loadscope-reorder
PYTEST = $(BIN)/python -m pytest $(WORKERS)
# What holds each operator and the authors' numbers, and where operators are softmax
# attention, on every backend.
CORE_TESTS = $(addprefix tests/models/test_,golden.py gradients.py operators.py \
  reduced_cases.py linformer.py reformer.py synthesizer.py)

.PHONY: setup setup-dev reproduce lint test test-fast test-all

setup: $(INSTALLED)
setup-dev: $(INSTALLED_DEV)

$(INSTALLED):
	$(if $(PYTHON),,$(error $(NO_PYTHON)))
	@echo "Building .venv with the packages of requirements.txt (about a minute)"
	@# Marks go first: a .venv half cleared must not bear one.
	@rm -f .venv/installed*
	$(PYTHON) -m venv --clear .venv
	$(PIP_INSTALL) -r requirements.txt
	@touch $@

$(INSTALLED_DEV): | $(INSTALLED)
	@echo "Adding what only tests and benchmarks need, from requirements-dev.txt"
	@# Without a mark until the end: what pip leaves when interrupted may not be whole.
	@rm $(INSTALLED)
	$(PIP_INSTALL) -r requirements-dev.txt
	@touch $(INSTALLED) $@

reproduce: setup
	@echo "Training five TransEvolve variants and the Transformer on short ListOps"
	$(BIN)/python reproduce.py --output=$(RUNS)

lint: setup-dev
	@echo "Checking style"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

test: lint
	@echo "Testing the operators on JAX and on PyTorch, then everything on TensorFlow"
	KERAS_BACKEND=jax $(PYTEST) -m "jax and not slow and not long" $(CORE_TESTS)
	KERAS_BACKEND=torch $(PYTEST) -m "jax and not slow and not long" $(CORE_TESTS)
	$(PYTEST) tests

test-fast: lint
	@echo "Testing what is quick to test, on TensorFlow"
	$(PYTEST) -m "not slow and not script and not long" tests

test-all: test
	@echo "Testing all models on JAX and on PyTorch, and on TensorFlow what takes long"
	KERAS_BACKEND=jax $(PYTEST) -m "jax and not long" tests/models
	KERAS_BACKEND=jax $(PYTEST) -m "jax and long" tests/models/test_attention.py
	KERAS_BACKEND=torch $(PYTEST) -m jax tests/models
	$(PYTEST) -m long tests
