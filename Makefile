# make demo     install what is missing, run the direct-move experiment with all three protocols
#               (another: make demo SCENARIO=random-walk; options: RUN_ARGS="--set duration_s=40")
# make setup    install what is missing: system packages and .venv
# make test     setup, lint and all tests (PYTEST_ARGS="-m 'not emulation'" for the quick ones)
# make lint     formatting, style, types, import rules
# make clean    remove what was built; runs/ stays

SHELL := /bin/bash
BIN := .venv/bin
PYTEST_ARGS ?=
SCENARIO ?= direct-move
RUN_ARGS ?=

.PHONY: demo setup test lint clean

demo: setup
	$(BIN)/tactical run $(SCENARIO) --protocol all $(RUN_ARGS)

setup:
	@./setup.sh

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: lint
	$(BIN)/python -m pytest $(PYTEST_ARGS)

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
