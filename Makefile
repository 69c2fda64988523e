# Everything a developer types. Bare make prints the targets (the lines with ##).
# Needs Go 1.26, git, gcc; on Debian and Ubuntu the rest is installed where it is missing.

GO       ?= go
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# Packages at once, and tests at once within one: GPU tests on a CPU driver use all cores by themselves.
JOBS     ?= $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -lt 4 ] && echo $$n || echo 4)
FUZZTIME ?= 20s
BENCH    ?= .

MODEL    := testdata/models/tiny-lfm2moe.gguf
PROMPT   := In the beginning

# Compiled shaders are kept, which spares a CPU driver seconds per start.
export MESA_SHADER_CACHE_DIR := $(CURDIR)/.cache/mesa

.PHONY: help
help: ## Print the targets
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: run
run: vulkan build cache ## Build, then let the tiny model continue a prompt
	bin/host run --model $(MODEL) --raw --temp 0.8 --top-k 40 --seed 1 --prompt "$(PROMPT)"

.PHONY: build
build: ## Build bin/host and bin/plugins, and lock the plugins' checksums
	$(GO) build -trimpath -buildvcs=false -ldflags '-X main.version=$(VERSION)' -o bin/host ./cmd/host
	$(GO) build -trimpath -buildvcs=false -o bin/plugins/ ./plugins/...
	bin/host plugin lock --registry registry.yaml

.PHONY: test
test: vulkan cache ## Run all tests
	$(GO) test -p $(JOBS) -parallel $(JOBS) -timeout 20m ./...

# Packages whose goroutines share memory, and of core/store the tests that are about that: the others read and
# write whole models, for minutes under the race detector.
RACED := ./core/stream ./core/fetch ./core/gpu

.PHONY: golden
golden: vulkan cache ## Run the kernel tests in all their forms, and the golden tests of the host in every combination of chunk length, pool and source
	SLUICE_MATRIX=full $(GO) test -parallel $(JOBS) -timeout 60m ./core/gpu/kerneltest
	SLUICE_MATRIX=full $(GO) test -parallel $(JOBS) -timeout 180m -run Golden -v ./cmd/host

.PHONY: race
race: vulkan cache ## Run the tests of the concurrent packages under the race detector
	$(GO) test -race -p $(JOBS) -parallel $(JOBS) -timeout 20m $(RACED)
	$(GO) test -race -run 'Concurrent|Progress' ./core/store

.PHONY: check
check: format vet race test clean-tree ## All that must hold before a commit: format, vet, tests, clean tree

.PHONY: format
format:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "not formatted (run gofmt -w):"; echo "$$unformatted"; exit 1; fi

.PHONY: vet
vet:
	$(GO) vet ./...

.PHONY: clean-tree
clean-tree:
	@if [ -n "$$(git status --porcelain)" ]; then echo "uncommitted changes:"; git status --short; exit 1; fi

.PHONY: fuzz
fuzz: vulkan cache ## Run every fuzz target for FUZZTIME (20s)
	GO=$(GO) scripts/fuzz $(FUZZTIME)

.PHONY: bench
bench: vulkan cache ## Run the benchmarks that match BENCH (.)
	$(GO) test -p 1 -run '^$$' -bench '$(BENCH)' ./...

TRACES := .cache/traces

.PHONY: lookahead
lookahead: ## Print how --lookahead auto does beside every fixed depth, simulated on the published shapes' traces (a quarter of an hour on 2 cores)
	mkdir -p $(TRACES)
	for x in lfm2moe/24b-a2b gemma4/26b-a4b qwen35moe/35b-a3b bailingmoe3/flash; do \
		$(GO) run ./tools/synthgguf --arch $${x%/*} --shape $${x#*/} --trace-tokens 400 --trace-out $(TRACES)/$${x%/*}.trace --force || exit; done
	SLUICE_TRACES=$(CURDIR)/$(TRACES) $(GO) test -run LookaheadTable -timeout 2h -v ./core/simulate

# Needs protoc 3.21.12, protoc-gen-go v1.36.12 and protoc-gen-go-grpc v1.6.2 on the PATH, as the generated files name them.
.PHONY: proto
proto: ## Generate the Go code of the .proto files
	protoc -I . --go_out=. --go_opt=module=github.com/sluicehost/sluice --go-grpc_out=. \
		--go-grpc_opt=module=github.com/sluicehost/sluice sdk/program/program.proto sdk/rpc/architecture.proto

.PHONY: clean
clean: ## Remove what was built, and the shader cache
	rm -rf bin .cache registry.lock.yaml

.PHONY: vulkan
vulkan:
	@scripts/vulkan

.PHONY: cache
cache:
	@mkdir -p $(MESA_SHADER_CACHE_DIR)
