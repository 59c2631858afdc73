# Understudy: `make` lists what one can do.

SHELL   := /bin/bash
GO      ?= go
TOOL    := $(GO) tool -modfile=tools/go.mod
SEED    ?= $(shell date +%s)
export CGO_ENABLED ?= 1

.DEFAULT_GOAL := help
.PHONY: help run test prove lint bench build clean setup screens

help: ## list the targets
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## start the demo: a slow API, Understudy in front of it, and one measured comparison
	@bin/understudy serve --demo --compare --arrivals 6

build: ## build bin/understudy, static
	@if [ ! -x bin/understudy ]; then echo "building understudy (the first build compiles SQLite and takes a minute or two)"; CGO_ENABLED=0 $(GO) build -v -trimpath -o bin/understudy ./cmd/understudy 2>&1 | awk '{printf "\r  %d packages", NR; fflush()} END {if (NR) print ""}'; fi
	@CGO_ENABLED=0 $(GO) build -trimpath -o bin/understudy ./cmd/understudy

test: setup ## the whole inspection: linters, house rules, every test with the race detector
	@tools/steps test

prove: build ## the same at full counts; goes on where it stopped; PROVE=8h to add to what was proved
	@tools/steps prove

lint: ## gofmt, go vet, staticcheck, pinned versions
	@tools/steps lint

bench: build ## measure: results go to bench/results
	@tools/steps bench

setup: ## install what tests need from Debian's packages, when it is absent
	@tools/steps setup

screens: build ## take pictures of every page of the viewer into .cache/screens
	@tools/steps setup
	@cd e2e && $(GO) run ./screens

clean: ## remove what was built
	rm -rf bin .cache
