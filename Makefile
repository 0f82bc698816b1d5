# make setup      builds .venv once
# make reproduce  trains and compares all models at laptop scale
# make test       lints and tests

PYTHON ?= python3.11
BIN := .venv/bin
RUNS ?= runs/reproduce
# Two files of tests at a time; WORKERS= for one.
WORKERS ?= --numprocesses=2 --dist=loadfile

.PHONY: setup setup-dev reproduce test

setup: .venv/installed
setup-dev: .venv/installed-dev

.venv/installed: requirements.txt
	@echo "Building .venv with the packages of requirements.txt (about a minute)"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

.venv/installed-dev: requirements-dev.txt .venv/installed
	@echo "Adding what only tests need, from requirements-dev.txt"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

reproduce: setup
	@echo "Training four TransEvolve variants and the Transformer on short ListOps"
	$(BIN)/python reproduce.py --workdir=$(RUNS)

test: setup-dev
	@echo "Checking style"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@echo "Testing the models on JAX, then everything on TensorFlow"
	KERAS_BACKEND=jax $(BIN)/python -m pytest $(WORKERS) tests/models
	$(BIN)/python -m pytest $(WORKERS) tests
