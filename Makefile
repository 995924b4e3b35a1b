# SPDX-License-Identifier: MIT
# `make help` lists the targets. `./setup-env --tests` makes the environment that they need; ./check is all of it, as CI
# runs it.

VENV := $(CURDIR)/.venv/bin
JOBS := $(shell nproc)
PYTHON_DIRS := $(wildcard setup.py correlator analyses tests benchmarks examples docs)
# but headers of LTTng's tracepoints: their macros are a language of their own
C_FILES = $(shell find correlator/native tracepoints examples tests benchmarks -name '*.[ch]' -o -name '*.[ch]pp' | \
	grep -v -e /build/ -e '_tp\.h$$')
CLANG_FORMAT ?= $(VENV)/clang-format
# what the tables' columns are in code, and what is written of the built program
COLUMNS := correlator/opline/store/arrow.py $(addprefix correlator/native/src/,output/columns.hpp block/steps.hpp \
	stages/op_attributes.hpp)
DOCS := $(COLUMNS) $(wildcard README.md docs/*.md docs/internals/*.md)

TYPESCRIPT ?= 7.0.2

.DEFAULT_GOAL := help
.PHONY: help setup build wheel deb test lint format format-check ruff mypy docs-check docs pictures native-test
.PHONY: page-types tidy native-asan native-fuzz regen bench clean

help:  ## print this list
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/\1\t\2/p' Makefile | expand -t 14

setup:  ## install what is missing (Debian and Python packages), make .venv and build
	./setup-env --tests

build:  ## compile what has changed: the core, the extension module, the plug-in, the providers, the demo store
	@$(MAKE) -s --no-print-directory -j$(JOBS) -C correlator/native PYTHON=$(VENV)/python
	@if [ -f tracepoints/Makefile ]; then $(MAKE) -s --no-print-directory -j$(JOBS) -C tracepoints bridge \
		OUT=$(CURDIR)/correlator/opline/capture/_bridge.so; fi
	@if [ -f examples/demo-store/Makefile ]; then $(MAKE) -s --no-print-directory -j$(JOBS) -C examples/demo-store; fi

wheel: build  ## dist/opline-*.whl, for this machine's Python and C library: it is installed without a compiler
	@rm -f dist/*.whl
	$(VENV)/pip wheel --quiet --disable-pip-version-check --no-deps -w dist .

deb: wheel  ## dist/opline_*.deb, for this Debian, with its Python packages inside
	@rm -f dist/*.deb
	@packaging/deb dist/*.whl dist

test:  ## run every test (pytest; the native tests are among them)
	$(VENV)/pytest

lint: format-check ruff mypy docs-check page-types tidy  ## formatting, ruff, mypy --strict, tsc, docs, clang-tidy

format:  ## format Python, C and C++
	$(VENV)/ruff format $(PYTHON_DIRS)
	@$(CLANG_FORMAT) -i $(C_FILES)

format-check:
	$(VENV)/ruff format --check $(PYTHON_DIRS)
	@$(CLANG_FORMAT) --dry-run -Werror $(C_FILES)

ruff:
	$(VENV)/ruff check $(PYTHON_DIRS)

tidy:
	@$(MAKE) -s --no-print-directory -j$(JOBS) -C correlator/native PYTHON=$(VENV)/python tidy

mypy:
	@$(VENV)/mypy $(shell find $(PYTHON_DIRS) -name '*.py' -not -path '*/build/*')

# of the page's modules, where there is npm: it fetches the checker once
page-types:
	@if command -v npm > /dev/null; then npm exec --yes --package=typescript@$(TYPESCRIPT) -- tsc -p tests/page; \
		else echo "no npm: the page's types are not checked"; fi

docs-check:
	$(VENV)/cog --check -PI docs $(DOCS)

docs:  ## write the generated parts of README.md and docs/, and the tables' columns in the code
	$(VENV)/cog -r -PI docs $(COLUMNS)
	@$(MAKE) -s --no-print-directory build
	$(VENV)/cog -r -PI docs $(filter-out $(COLUMNS),$(DOCS))

pictures:  ## draw docs/pictures/ anew
	docs/pictures/draw

native-test:  ## the C++ tests
	@$(MAKE) --no-print-directory -s -j$(JOBS) -C correlator/native test

native-asan:  ## the native tests under the address and undefined-behaviour sanitizers
	@$(MAKE) --no-print-directory -s -j$(JOBS) -C correlator/native asan

native-fuzz:  ## nonsense for the reader, the core and the shim's collector, SECONDS=12 in all (./setup-env --native)
	@$(MAKE) --no-print-directory -s -j$(JOBS) -C correlator/native fuzz SECONDS=$(or $(SECONDS),12) RUNS=$(RUNS)

regen: docs  ## rewrite what tests compare with: golden files, generated docs (then read the diff)
	OPLINE_REGEN=1 $(VENV)/pytest -q

bench: build  ## benchmarks; each proves equality before it times
	@for b in benchmarks/*.sh benchmarks/*_bench.py benchmarks/*/*_bench.py; do [ -f "$$b" ] || continue; echo "== $$b"; \
		case "$$b" in *.py) $(VENV)/python "$$b";; *) bash "$$b";; esac || exit 1; done

clean:  ## remove what was built (.venv and runs/ stay)
	@$(MAKE) -s --no-print-directory -C correlator/native clean
	@for d in tracepoints examples/demo-store; do [ -f $$d/Makefile ] && $(MAKE) -s --no-print-directory -C $$d clean; \
		done; true
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
