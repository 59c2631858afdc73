# Understudy: `make` lists what one can do.

SHELL   := /bin/bash
GO      ?= go
TOOL    := $(GO) tool -modfile=tools/go.mod
SEED    ?= $(shell date +%s)
export CGO_ENABLED ?= 1

# make module PATH=… names a path of Go. The commands still need the PATH that make itself was started with.
ifeq ($(origin PATH),command line)
MODULE := $(PATH)
override PATH := $(shell if [ -r /proc/$$PPID/environ ]; then while IFS= read -r -d '' line; do \
  [[ $$line != PATH=* ]] || echo "$${line/PATH=/}"; done </proc/$$PPID/environ; else echo "$$PATH"; fi)
endif

.DEFAULT_GOAL := help
.PHONY: help run lines sample test prove lint bench build clean setup screens docs release module

help: ## list the targets
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## start the demo: a slow API, Understudy in front of it, and one measured comparison
	@tools/steps run

build: ## build bin/understudy, static
	@tools/steps build

test: setup ## the whole inspection: linters, house rules, every test with the race detector
	@tools/steps test

prove: build ## the same at full counts; goes on where it stopped; PROVE=8h to add to what was proved
	@tools/steps prove

lint: ## gofmt, go vet, staticcheck, pinned versions
	@tools/steps lint

lines: ## count the product's lines and tokens of Go
	@cd internal/house && $(GO) test -vet=off -count=1 -run Ceiling -lines | sed '/^PASS$$/d; /^ok /d'

sample: ## print 120 comments and 80 names without their code: SEED=n chooses them
	@cd internal/house && $(GO) test -vet=off -count=1 -run TestSample -sample $(SEED) | sed '/^PASS$$/d; /^ok /d'

bench: build ## measure: results go to bench/results; ONLY=part; BASE=revision to compare with it
	@tools/steps bench

setup: ## install what tests need from Debian's packages, when it is absent
	@tools/steps setup

release: ## write what is published into bin/release: VERSION=v0.1.0, URL=where it will be downloaded from, KEY=an SSH key that signs
	@VERSION="$(VERSION)" URL="$(URL)" KEY="$(abspath $(KEY))" tools/steps release

module: ## give the Go module another path: PATH=host/owner/understudy
	@tools/steps module "$(MODULE)"

docs: ## write the documentation as HTML files into .cache/docs, and check its links
	@$(GO) run ./cmd/site .cache/docs

screens: build ## take pictures of every page of the viewer into .cache/screens
	@tools/steps setup
	@cd e2e && $(GO) run ./screens

clean: ## remove what was built
	rm -rf bin .cache
