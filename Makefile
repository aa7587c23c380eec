# Everything runs in .venv, which the first target makes. `make help` lists the targets.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -q -p no:cacheprovider
# A machine without a C compiler gets one from a wheel.
COMPILER := $(shell command -v "$${IREES_CC:-$${CC:-clang}}" || command -v clang || command -v gcc || command -v cc)
comma    := ,
# Those that need more than `make test` installs.
FRONTENDS := tests/frontends tests/coverage
EXTRAS   := test$(if $(COMPILER),,$(comma)zig)

.PHONY: help demo test nvrtc mutants prove test-models test-models-all operators zoo bench bench-breadth bench-gpu lint docs clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

demo: $(VENV)/.ready ## compile a ResNet exported from PyTorch, run it, compare
	$(BIN)/python examples/demo.py

# Of the cases of a test CI runs one of SAMPLE, always the same ones.
SAMPLE ?= 10
EVERY  ?= 1

test: $(VENV)/.ready ## all tests but the models; SAMPLE=1 runs every case
	$(PYTEST) -n auto --ignore tests/models --durations 15 --sample $(SAMPLE)

# Each is alone in an environment, with the CuPy of its CUDA: several of either break each other.
NVRTCS := 12.9 13.0 13
nvrtc: $(NVRTCS:%=$(VENV)/nvrtc-%/.ready) ## compile sample kernels with three versions of NVRTC, and check CuPy's names
	@set -e; for version in $(NVRTCS); do echo "== NVRTC $$version"; \
	  $(VENV)/nvrtc-$$version/bin/python -m pytest -q -p no:cacheprovider --sample $(SAMPLE) \
	    tests/backends/cuda/test_toolchain.py tests/backends/cuda/test_nvrtc.py; done

mutants: $(VENV)/.models ## put known faults back one by one; the tests must notice each, and bisect name some
	$(BIN)/python tests/mutants/run.py --every $(EVERY) $(MUTANTS)
	$(BIN)/python tests/mutants/bisect_rate.py --sample

prove: $(VENV)/.ready ## every obligation of integer rules, by z3
	$(PYTEST) tests/proofs

test-models: $(VENV)/.models ## real models of PyTorch, JAX and ONNX, compared with what they came from
	$(PYTEST) $(FRONTENDS) tests/models -m "not slow" -n auto --durations 15 --sample $(SAMPLE)

test-models-all: $(VENV)/.models ## those too that emulate the largest, or compile them for more GPUs
	$(PYTEST) tests/models

operators: $(VENV)/.models ## PyTorch's operator database; writes docs/operators.md
	$(BIN)/python tests/coverage/operators_page.py --run --write docs/operators.md

zoo: $(VENV)/.models ## architectures with random weights, by both entries; writes docs/models.md
	$(BIN)/python -m pip install -q --no-deps timm diffusers pillow
	$(BIN)/python tests/coverage/zoo.py --mode both --reuse --out zoo.json --write docs/models.md

bench: $(VENV)/.models ## time irees beside its peers; writes docs/performance.md and its plot
	$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/bench.py --write docs/performance.md

bench-breadth: $(VENV)/.models ## time many small programs beside irees' peers; writes docs/performance_breadth.md
	$(BIN)/python -m pip install -q -e '.[bench]' openvino
	$(BIN)/python benchmarks/breadth.py --write docs/performance_breadth.md

# Which CuPy is installed where there is none: two of them in one environment break each other.
CUDA ?= cuda12
bench-gpu: $(VENV)/.models ## on a machine with an NVIDIA GPU (CUDA=cuda13 for CUDA 13); writes docs/performance_gpu.md
	$(BIN)/python -c 'import cupy' 2>/dev/null || $(BIN)/python -m pip install -q -e '.[$(CUDA)]'
	$(BIN)/python benchmarks/bench_gpu.py --write docs/performance_gpu.md

lint: $(VENV)/.ready ## ruff and pyright
	$(BIN)/python -m pip install -q -e '.[lint]'
	$(BIN)/ruff check .
	$(BIN)/pyright

docs: $(VENV)/.docs ## the site, below build/site; warnings are errors; runs the notebooks
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	for each in examples/notebooks/*.py; do $(BIN)/python $$each || exit 1; done

clean: ## remove the environment
	rm -rf $(VENV)

$(VENV)/.models: $(VENV)/.ready
	$(BIN)/python -m pip install -q torch==2.13.0
	$(BIN)/python -m pip install -q -e '.[models]'
	@touch $@

$(VENV)/.docs: $(VENV)/.ready
	$(BIN)/python -m pip install -q -e '.[docs]'
	@touch $@

$(VENV)/nvrtc-%/.ready: $(VENV)/.ready
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install -q -e '.[cuda$(firstword $(subst ., ,$*))]' pytest hypothesis \
	  'nvidia-cuda-nvrtc$(if $(filter 12.%,$*),-cu12)==$*.*'
	@touch $@

$(VENV)/.ready: pyproject.toml
	@$(if $(COMPILER),,echo "no C compiler on PATH: installing the zig wheel (400 MB) to have one")
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q -e '.[$(EXTRAS)]'
	@touch $@
