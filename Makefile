# Everything a person types. More than a line of logic lives in scripts/.
SHELL := /bin/bash
export PATH := $(PATH):$(HOME)/.cargo/bin
.DEFAULT_GOAL := help
.PHONY: help run build test lint fmt bench fuzz requirements clean-tools

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## build what is missing and start the daemon; ARGS='--listen 127.0.0.1:9000' is passed on
	@exec target/release/cofer serve $(ARGS)

build: ## the release binary, target/release/cofer, with the console in it
	@scripts/build-console
	cargo build --release -p cofer

test: ## install what the tests need and run them all; ARGS='-E "package(cofer-store)"' goes to nextest
	@scripts/test $(ARGS)

lint: ## format, clippy, licences, spelling, shell scripts, tidiness
	@scripts/lint

fmt: ## format the code
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml

bench: ## measure against the limits and the peers; see bench/README.md
	@scripts/bench $(ARGS)

fuzz: ## fuzz what reads bytes from outside, FUZZ_SECONDS=60 each
	@scripts/fuzz $(ARGS)

requirements: ## which requirements have a test, and which have none
	@cargo run --quiet -p xtask -- requirements

clean-tools: ## remove the tools that test, lint, bench and fuzz installed, also for other checkouts
	rm -rf .cofer-test "$${XDG_CACHE_HOME:-$$HOME/.cache}/cofer-test"
