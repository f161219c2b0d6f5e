# Everyday commands. `make demo` and `make test` are the two of the README.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= devel
COMMIT  := $(shell git rev-parse --short HEAD 2>/dev/null)
LDFLAGS := -X main.version=$(VERSION) -X main.commit=$(COMMIT)
SOURCES := $(shell find cmd internal bench/cmd bench/generate -name '*.go' -o -name '*.py' -o -name '*.sql') $(wildcard internal/web/dist/* internal/web/dist/*/*) internal/api/start.html go.mod go.sum
DEMO    ?= demo

.PHONY: deploy-check deploy-test help build demo release release-check python-test check test test-fast test-full test-race lint ui check-ui test-ui ui-pictures fuzz fuzz-api chaos chaos-cluster bench planted bench-cluster bench-forecast bench-serve bench-serve-table bench-stores bench-sweep bench-table-index bench-ui services-up services-down services-status clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

build: bin/thalweg ## Build bin/thalweg

bin/thalweg: $(SOURCES)
	@command -v g++ >/dev/null || { echo "a C and C++ compiler is needed: DuckDB is linked in (Debian: apt-get install g++)"; exit 2; }
	@echo "building bin/thalweg (the first build links DuckDB and fetches modules: a minute or two)"
	@go build -ldflags '$(LDFLAGS)' -o $@ ./cmd/thalweg

bin/thalweg-generate: $(SOURCES)
	@echo "building bin/thalweg-generate"
	@go build -o $@ ./bench/cmd/thalweg-generate

bin/thalweg-drive: $(SOURCES)
	@echo "building bin/thalweg-drive"
	@go build -o $@ ./bench/cmd/thalweg-drive

bin/thalweg-serve: $(SOURCES)
	@echo "building bin/thalweg-serve"
	@go build -o $@ ./bench/cmd/thalweg-serve

demo: bin/thalweg bin/thalweg-generate ## Build, generate a small portfolio, run it, show the result and its page
	@scripts/demo $(DEMO)

release: ## Archives and checksums for each architecture, in dist/ (VERSION=1.2.3)
	@VERSION=$(VERSION) scripts/release

release-check: ## Check dist/: whole, runs where nothing else is, and two builds are equal
	@VERSION=$(VERSION) scripts/release-check

python-test: bin/thalweg ## The package for Python: types, and tests from an installed wheel
	@scripts/python-test

check: ## What to run before each commit, in under a minute
	@scripts/check

test: ## Everything that CI checks
	@scripts/test

test-full: ## The same with larger samples of what takes long
	@SHORT='' scripts/test

test-fast: ## The tests without the race detector, and small samples of what takes long
	@scripts/test-fast

planted: ## Plant causes into runs, and require capacity explain to name them, in 2 of 3 runs each
	@THALWEG_PLANTED_REPEATS=3 go test -count=1 -v -run TestPlantedCauses ./internal/app/runner

test-race: ## All Go tests with the race detector (an hour or more)
	@scripts/test-race

lint: ## go vet, staticcheck, formatting
	@scripts/lint

ui: ## Build the pages of the server into internal/web/dist (Node 20 or later); they are committed
	@scripts/ui build

check-ui: ## Types, formatting and unit tests of the pages
	@scripts/ui check

test-ui: bin/thalweg bin/thalweg-generate bin/thalweg-drive ## The pages in a real browser, over a real server and runs
	@scripts/ui test

bench-ui: bin/thalweg bin/thalweg-drive bin/thalweg-serve ## Measure the pages in Chromium over loopback, in ten minutes at most (PARTS="size now node dag frames leak screen rows runs", and screen-cluster, hour)
	@eval "$$(scripts/services env)"; cd ui && node test/bench.mjs $(PARTS)

ui-pictures: bin/thalweg bin/thalweg-generate ## Make the pictures of docs/ui.md again, into docs/ui (takes ImageMagick)
	@scripts/ui pictures ../docs/ui

deploy-check: ## All tests of deploy/: Terraform, units, scripts, the manifest, then deploy-test; gets the tools that Debian has
	@scripts/deploy-check

deploy-test: ## Install the package in a fresh Debian root, and run what the units start (root; PACKAGE=FILE.deb)
	@scripts/deploy-test

fuzz: ## Fuzz each target for FUZZTIME (default 60s)
	@scripts/fuzz

fuzz-api: bin/thalweg ## Ask a server what schemathesis makes of its API, 10,000 cases as each role (FUZZ_CASES, FUZZ_ROLES)
	@scripts/fuzz-api

chaos: ## The long tests in full (hours); with CHAOS_MINUTES=10 random kills of random runs, for so long
	@scripts/chaos

chaos-cluster: ## The long tests of a fleet, on three Cassandra nodes and a broker of their own; CHAOS_MINUTES=1 for each fault
	@scripts/chaos-cluster

bench: bin/thalweg ## Measure against other ways to do the same (hours; docs/benchmarks.md says how to run one case)
	@scripts/bench

bench-serve: bin/thalweg ## Measure a server over loopback (docs/benchmarks.md)
	@scripts/bench --case serve-news,serve-rows,serve-runs,serve-node,serve-cost,serve-children

bench-serve-table: ## Measure a served table beside Redis, and Valkey of VALKEY=PROGRAM: 10 M keys (ARGS="--keys 1000000 --rounds 1")
	@VALKEY="$(VALKEY)" scripts/bench-serve-table $(ARGS)

bench-table-index: bin/thalweg ## Measure how fast indexes of tables are built, in a few minutes (ROWS=10000000)
	@scripts/bench-table-index

bench-forecast: PARTS ?= fleet size
bench-forecast: bin/thalweg ## Hold forecasts against runs, in more than half an hour (PARTS="fleet size"; fleet: over the services of `make services-up`, as root)
	@eval "$$(scripts/services env)"; scripts/bench --case "$$(echo $(PARTS:%=forecast-%) | tr ' ' ,)"

bench-stores: ## Measure `bench store` beside cassandra-stress, over the Cassandra of `make services-up`, in an hour and a half (ARGS="--rounds 1 --for 20s")
	@scripts/bench-cassandra-stress $(ARGS)

bench-sweep: bin/thalweg ## Hold what a worker chooses against fixed numbers, over the services of `make services-up`, too
	@eval "$$(scripts/services env)"; scripts/bench --case sweep,sweep-cluster

bench-cluster: bin/thalweg ## Measure a fleet over the services of `make services-up` (docs/benchmarks.md)
	@eval "$$(scripts/services env)"; scripts/bench --case cluster,cluster-scaling,cluster-lookup,serve-cluster-news,serve-cluster-rows

services-up: ## Start a real Cassandra and RabbitMQ on loopback (NODES=3 for three; docs/services.md)
	@scripts/services up

services-down: ## Stop them
	@scripts/services down

services-status: ## Say what of them runs, on which ports, and where the logs are
	@scripts/services status

clean: ## Remove what was built and generated here
	rm -rf bin dist $(DEMO)
