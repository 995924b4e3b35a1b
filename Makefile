# SPDX-License-Identifier: MIT
# `make help` lists the targets. ./setup-env makes the environment first; ./check is what CI runs.

PY := .venv/bin/python
JOBS := $(shell nproc)
PYTHON_FILES := $(wildcard setup.py) correlator/opline analyses/opline_analyses tests benchmarks examples docs

.DEFAULT_GOAL := help
.PHONY: help setup build

help:  ## print this list
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/\1\t\2/p' Makefile | expand -t 12

setup:  ## install what is missing (Debian and Python packages), make .venv and build
	./setup-env

build:  ## compile what has changed: core, extension module, plug-in, tracepoint providers
	@$(MAKE) -s --no-print-directory -j$(JOBS) -C correlator/native PYTHON=$(abspath $(PY))
