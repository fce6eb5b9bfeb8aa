# Everything starts from Python 3.11+ and make; the first target that needs it builds .venv.

PYTHON  ?= python3
# Two processes more than there are cores: tests of pages and services wait half of their time.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(4, (os.cpu_count() or 1) + 2))')
PYTEST   = $(BIN)/pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder
PLAIN    = -m "not slow and not served and not faults"

VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SMALL  := $(VENV)/.small
OLDEST := .venv-oldest
PIP    := -m pip --disable-pip-version-check -qq

# Keep compiled files: without them every test process and every command compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-rest test-faults test-elsewhere test-floats dump dump-check bench bench-quick bench-load bench-check audit-rivals docs docs-version dist dist-check lint style system format clean distclean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile
	@echo "  (PYTHON=python3.12 chooses the interpreter of a new $(VENV); WORKERS=1 the number of test processes)"

demo: $(SMALL) ## a sensitive survey collected over HTTP on this machine
	@$(BIN)/deniable demo

# Types are checked beside the tests. In a fresh copy one process compiles the tests first, which every process would do.
test: style system ## lint, types and the tests that a change needs first, doctests included: four minutes
	@types=$$(mktemp); $(BIN)/mypy > "$$types" 2>&1 & checked=$$!; \
	[ -d tests/__pycache__ ] || $(BIN)/pytest -qq --collect-only $(PLAIN) > /dev/null 2>&1; \
	echo '$(PYTEST) $(PLAIN)'; $(PYTEST) $(PLAIN); tested=$$?; \
	echo '$(BIN)/mypy'; wait $$checked; typed=$$?; cat "$$types"; rm -f "$$types"; [ $$tested -eq 0 ] && [ $$typed -eq 0 ]

test-all: test test-rest test-faults ## every test

test-rest: $(READY) system ## what test leaves out, but the faults: slow statistics, whole services, browsers and processes
	$(PYTEST) -m "(slow or served) and not faults"

test-faults: $(READY) system ## kill, cut, fill and turn back what a service needs, on every store; a table of what was lost
	$(BIN)/pytest -q -n 2 --dist worksteal -m faults tests/faults

test-elsewhere: $(READY) system ## all tests but the faults as on another machine: processor, place, order, load, date
	$(BIN)/python tools/elsewhere.py $(ELSEWHERE)

test-floats: $(READY) $(OLDEST)/.ready ## the tests marked floats as old processors round, and with the oldest numpy and SciPy
	@$(BIN)/python tools/float_kernels.py $(VENV) $(OLDEST)

dump: $(READY) ## write down everything that the protocols say, before a change that must not change it
	$(BIN)/python -m tests.dump

dump-check: $(READY) ## compare what the protocols say now with what was written down
	$(BIN)/python -m tests.dump --check

bench: $(READY) ## all benchmarks
	$(BIN)/python -m benchmarks

bench-quick: $(READY) ## the benchmarks at small sizes
	$(BIN)/python -m benchmarks --quick

bench-load: $(READY) ## each store under load, a quarter of an hour; needs a machine of its own
	$(BIN)/python -m benchmarks --group load

bench-check: $(READY) ## all benchmarks again; names what got slower than the stored ratios
	$(BIN)/python -m benchmarks --check

audit-rivals: $(READY) ## audits of other packages' clients, which are installed in .venv-peers, and of our own kinds
	$(BIN)/python -m benchmarks --group audits --group audit-kinds

docs: $(READY) ## build the site in site/, running its examples; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "docs: site/index.html"

docs-version: $(READY) ## build the site in site/VERSION, beside the versions that are there, and a page that lists them
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site/$$($(BIN)/python tools/docs_versions.py --current)
	@$(BIN)/python tools/docs_versions.py site

# npm gives every file of a package one fixed date; hatchling gives them this one, and sorts them.
dist: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1580601600)
dist: $(READY) ## wheel, sdist, npm package and their hashes in dist/; the same bytes at each build of a commit
	@rm -rf dist && $(BIN)/python tools/sbom.py && $(BIN)/python -m hatchling build -d dist > /dev/null
	@npm pack ./web --pack-destination dist --silent > /dev/null
	@cd dist && sha256sum * > SHA256SUMS && cat SHA256SUMS

dist-check: dist ## build what is to be uploaded; refused as long as its metadata has addresses that lead nowhere
	@! grep -rnF 'deniable.example' pyproject.toml web/package.json src/deniable/schemas

lint: style ## code style, layers and types
	$(BIN)/mypy

style: $(READY) ## code style and layers
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	@echo "$(BIN)/lint-imports"; report=$$($(BIN)/lint-imports --no-logo) || { echo "$$report"; exit 1; }

system: ## a browser, Node.js, Java and PostgreSQL 15 for the tests, where they are missing and can be fetched
	@$(PYTHON) tools/system_packages.py

format: $(READY) ## rewrite the code in the project's style
	$(BIN)/ruff check --quiet --fix .
	$(BIN)/ruff format --quiet .

clean: ## remove what was built, except .venv
	rm -rf build dist site .docs_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean ## remove the environments as well
	rm -rf $(VENV) $(OLDEST)

# Two stages, so that the demo does not wait for Spark, a browser and the tools of the docs.
$(SMALL): pyproject.toml
	@if [ ! -x $(BIN)/pip ]; then \
	  command -v $(PYTHON) >/dev/null || \
	    { echo "there is no $(PYTHON) here: name a Python 3.11 or newer, as in make PYTHON=python3.12" >&2; exit 1; }; \
	  $(PYTHON) -c 'import sys; v = tuple(sys.version_info[:2]); sys.exit(None if v >= (3, 11) else "deniable needs Python 3.11 or newer and $(PYTHON) is %d.%d: name another, as in make PYTHON=python3.12" % v)' && \
	  echo "making $(VENV) with $(PYTHON) (once)" && $(PYTHON) -m venv --clear $(VENV); \
	fi
	@echo "installing deniable in $(VENV) (again only when pyproject.toml changes)"
	@$(BIN)/python $(PIP) install --no-compile -e '.[serve]'
	@touch $@

$(READY): $(SMALL)
	@echo "installing the tools of a developer in $(VENV) (again only when pyproject.toml changes)"
	@$(BIN)/python $(PIP) install -e '.[dev]'
	@touch $@

$(OLDEST)/.ready: $(READY) tools/float_kernels.py
	@echo "making $(OLDEST) with the oldest numpy and SciPy that are supported (again only when pyproject.toml changes)"
	@$(BIN)/python -m venv --clear $(OLDEST)
	@$(BIN)/python tools/float_kernels.py --oldest | xargs -d '\n' $(OLDEST)/bin/python $(PIP) install --no-compile --only-binary :all:
	@touch $@
