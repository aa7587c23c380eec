# Everything runs in .venv, which the first target makes. `make help` lists the targets.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -q -p no:cacheprovider
# A machine without a C compiler gets one from a wheel.
COMPILER := $(shell command -v "$${IREES_CC:-$${CC:-clang}}" || command -v clang || command -v gcc || command -v cc)
comma    := ,
EXTRAS   := test$(if $(COMPILER),,$(comma)zig)

.PHONY: help demo test test-models bench lint clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

demo: $(VENV)/.ready ## compile a small model, run it, and show its phases
	$(BIN)/python examples/quickstart.py

test: $(VENV)/.ready ## all tests but the models
	$(PYTEST) -n auto --ignore tests/models

test-models: $(VENV)/.ready ## whole models, end to end
	$(PYTEST) tests/models

bench: $(VENV)/.ready ## time the examples
	$(BIN)/python -m irees.tools.main bench examples/softmax.mlir --input=512x512xf32=1

lint: $(VENV)/.ready ## ruff and pyright
	$(BIN)/python -m pip install -q -e '.[lint]'
	$(BIN)/ruff check .
	$(BIN)/pyright

clean: ## remove the environment
	rm -rf $(VENV)

$(VENV)/.ready: pyproject.toml
	@$(if $(COMPILER),,echo "no C compiler on PATH: installing the zig wheel (400 MB) to have one")
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q -e '.[$(EXTRAS)]'
	@touch $@
