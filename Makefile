# Everyday commands; they use the virtual environment of the README.
bin ?= .venv/bin

.PHONY: install test test-slow lint format gallery ci

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

ci:
	.ci/run
