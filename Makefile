# Berth. `make up` lends this machine; `make help` lists the rest.

FUZZTIME ?= 60s
UP_FLAGS ?=
PEERS ?=

GOLANGCI := v2.15.0
GOFUMPT := go run mvdan.cc/gofumpt@v0.12.0
GOIMPORTS := go run golang.org/x/tools/cmd/goimports@v0.52.0
GOVULNCHECK := go run golang.org/x/vuln/cmd/govulncheck@v1.9.0
LINT := .tools/golangci-lint-$(GOLANGCI)
AGENT := cmd/berth/embedded/berth-agent

# Go's own directory is not on the PATH of every root shell.
export PATH := $(PATH):/usr/local/go/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
# The program reaches the GPU's driver through C (docs/decisions/0004-nvml-and-cgo.md); without a
# C compiler it is built without that, and says so.
CC ?= cc
CGO := $(if $(shell command -v $(CC)),1,0)
# go-nvml binds all of NVML, old names too.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations
# A checkout that belongs to somebody else has no version, but it builds.
BUILD := CGO_ENABLED=$(CGO) go build -trimpath -tags netgo,osusergo -v -buildvcs=$(shell git rev-parse HEAD >/dev/null 2>&1 && echo auto || echo false)
SIM := bin/sim/libnvidia-ml.so.1
# With REQUIRE a test fails that would be skipped for want of a tool.
REQUIRE := REQUIRE=openssh,docker,root,busybox,cc
INTEGRATION := $(REQUIRE) go test -tags integration -count 1 -p 1 -timeout 20m
SAY := @printf '\n== %s\n'

.DEFAULT_GOAL := help
ifeq ($(CGO),0)
NO_GPU = @echo 'make: no C compiler ($(CC)): this berth will see no GPU; `make setup` installs one'
endif
.PHONY: help up test build sim agent setup unit script integration golden fuzz bench bench-peers fmt lint docs check vuln release clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: setup build ## Install what is missing, build, start the gateway and print a link
	@if $(SUDO) bin/berth ls >/dev/null 2>&1; then \
		echo "A gateway is running here already; a new link of it:"; exec $(SUDO) bin/berth share; \
	fi; exec $(SUDO) bin/berth up --share $(UP_FLAGS)

setup:
	@container/setup.sh

test: ## Run every test, on a fresh machine too; as root
	@[ "$$(id -u)" = 0 ] || { echo 'make test: error: the tests need root'; \
		echo 'make test: hint: sudo env "PATH=$$PATH" make test'; exit 1; }
	$(SAY) 'tools and Docker'
	@container/setup.sh tests
	$(SAY) 'build'
	@$(MAKE) --no-print-directory build
	$(SAY) 'guest image'
	$(INTEGRATION) -v -run '^TestGuestImage$$' ./container
	$(SAY) 'unit tests and scripts, with the race detector'
	@go build -race -v ./...
	$(REQUIRE) go test -race ./...
	$(SAY) 'integration tests, with Docker and OpenSSH'
	$(INTEGRATION) -v ./...

build: agent ## Build bin/berth with the agent in it
	$(NO_GPU)
	@$(BUILD) -o bin/berth ./cmd/berth

sim: $(SIM) ## Build a simulated GPU driver and example states into bin/sim

# The header is go-nvml's own, so that both agree on every structure. The library is moved into
# place at once: tests of several packages may build it at the same time.
$(SIM): $(wildcard container/gpu/sim/*.[ch] container/gpu/sim/states/*.json)
	@mkdir -p bin/sim && new=$$(mktemp bin/sim/.new.XXXXXX) && trap 'rm -f '$$new EXIT && \
	nvml=$$(go list -m -f '{{.Dir}}' github.com/NVIDIA/go-nvml) && [ -n "$$nvml" ] && \
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden -DNVML_NO_UNVERSIONED_FUNC_DEFS \
		-isystem "$$nvml/pkg/nvml" -Wl,-soname,libnvidia-ml.so.1 -o $$new container/gpu/sim/*.c && \
	cp container/gpu/sim/states/*.json bin/sim/ && mv $$new $@

agent:
	@CGO_ENABLED=0 go build -trimpath -v -buildvcs=false -ldflags '-s -w' -o $(AGENT) ./cmd/berth-agent

unit: agent ## Run the tests that need no Docker, with the race detector
	go test -race ./...

script: agent ## Run the command line's stories, cmd/berth/testdata/script
	go test -run '^TestScript' ./cmd/berth

integration: build setup ## Run the tests that need Docker
	$(INTEGRATION) ./...

golden: agent ## Rewrite the golden files; read the diff
	go test $$(git ls-files '*.golden' | sed 's|^|./|; s|/testdata/.*||' | sort -u) -update

fuzz: agent ## Run each fuzz target for FUZZTIME
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's|/[^/]*:func | |' | while read -r pkg target; do \
		echo "== $$pkg $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$pkg" || exit 1; done

bench: agent ## Measure, ten counts, into docs/bench
	@mkdir -p docs/bench
	{ uname -srm; go version; nproc; go test -run '^$$' -bench . -benchmem -count 10 ./...; } | tee docs/bench/$$(date +%F).txt

bench-peers: ## Measure Berth beside sshd in a container, into docs/bench; PEERS=-peers-quick tries
	@container/setup.sh tests
	@$(MAKE) --no-print-directory build
	go test -tags peers -count 1 -timeout 60m -run '^TestPeers$$' ./cmd/berth -v -args -peers-out $(CURDIR)/docs/bench $(PEERS)

fmt: ## Format the code
	$(GOFUMPT) -w cmd gateway tunnel container $(wildcard tui)
	$(GOIMPORTS) -w cmd gateway tunnel container $(wildcard tui)

lint: agent $(LINT) ## Vet and lint, formatting included
	$(LINT) run --build-tags integration,peers ./...

$(LINT):
	$(SAY) 'building golangci-lint $(GOLANGCI), once; this takes some minutes'
	GOBIN=$(CURDIR)/.tools/build go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)
	@mv .tools/build/golangci-lint $@

docs: ## Rewrite docs/commands.md from the program; fails if it changed
	@go test -run '^TestCommandsPage$$' ./cmd/berth || { go test -count 1 -run '^TestCommandsPage$$' ./cmd/berth -docs; \
		echo 'make docs: docs/commands.md was rewritten: commit it'; exit 1; }

check: lint unit script docs ## What each commit must pass

vuln: agent ## Look for known vulnerabilities; needs vuln.go.dev
	@$(GOVULNCHECK) ./... || { echo 'make vuln: hint: where vuln.go.dev cannot be reached, nothing was checked'; exit 1; }

release: ## Tag VERSION and build it for each platform into dist; publishes nothing
	@VERSION=$(VERSION) .ci/release

clean: ## Remove what was built
	rm -rf bin dist .tools $(AGENT)
