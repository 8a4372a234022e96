# Everyday commands; they use the virtual environment of the README.
bin ?= .venv/bin

# Seconds of coverage-guided fuzzing for each reader.
seconds ?= 600

.PHONY: install test test-slow fuzz lint format gallery bench bench-quick ci

install:
	python3 -m venv .venv
	$(bin)/pip install -e ".[dev]"

test:
	$(bin)/python -m pytest -q

test-slow:
	$(bin)/python -m pytest -q -m slow

# Needs the extra `fuzz`: $(bin)/pip install -e ".[dev,fuzz]". One reader: make fuzz only=ibnetdiscover seconds=60
fuzz:
	FORESTSYN_FUZZ_SECONDS=$(seconds) $(bin)/python -m pytest -q -m fuzz tests/fuzz -k "$(only)"

lint:
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/mypy
	$(bin)/lint-imports

format:
	$(bin)/ruff check --fix .
	$(bin)/ruff format .

gallery:
	$(bin)/forestsyn gallery schedules

# The whole table takes some minutes; its results are kept.
bench:
	$(bin)/python -m benchmarks --json benchmarks/results/two-cores.json -o benchmarks/results/two-cores.md

bench-quick:
	$(bin)/python -m benchmarks --quick

ci:
	.ci/run
