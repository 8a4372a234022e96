# Everyday commands; they use the virtual environment of the README.
bin ?= .venv/bin

.PHONY: install test test-slow lint format gallery bench bench-quick ci

install:
	python3 -m venv .venv
	$(bin)/pip install -e ".[dev]"

test:
	$(bin)/python -m pytest -q

test-slow:
	$(bin)/python -m pytest -q -m slow

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
