# Two commands on a fresh machine with Go and apt do everything: `go run ./bench`
# and `make test`.

GO ?= go

# golangci-lint is run at a fixed version through the module proxy, in a module graph
# of its own: none of what it depends on gets into go.mod. The first run compiles it
# (about two minutes on two cores), later ones take it from the build cache.
GOLANGCI_LINT ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# Arguments for the tests and for the benches: make test TESTFLAGS='-run TestFence',
# make bench BENCHFLAGS='--seconds 5', make bench-peers PEERFLAGS='--groups hit-zipf'.
TESTFLAGS ?=
BENCHFLAGS ?=
PEERFLAGS ?=

# The comparison with other libraries is a module of its own, which ./... leaves out.
PEERS := cd bench/peers &&

# What bench-check compares: make bench-check BASE=v1.0.0 HEAD=main. .ci/bench-check
# says what stands for one that is not given.
BASE ?=
HEAD ?=

.PHONY: all test vet lint bench bench-peers bench-check instructions fmt servers

all: vet lint test

# The comparison is tested without -race, under which its full caches take minutes; so is
# what byte budgets take of the heap, which -race makes another one, and so are stampedes
# over all seeds, the sample of a long trace, and a million loads, in seconds.
test: servers
	$(GO) test -race -timeout 20m $(TESTFLAGS) ./...
	$(GO) test -run Heap ./backends/otter ./backends/ristretto ./backends/internal/size
	$(GO) test -run OverSeeds ./bench/internal/lab
	$(GO) test -run PartIsLikeTheWhole ./bench/internal/curve
	$(GO) test ./coordinator/internal/manykeys
	$(PEERS) $(GO) test $(TESTFLAGS) ./...

vet:
	$(GO) vet ./...
	$(PEERS) $(GO) vet ./...

lint: vet
	$(GOLANGCI_LINT) run ./...
	$(PEERS) $(GOLANGCI_LINT) run ./...

bench:
	$(GO) run ./bench $(BENCHFLAGS)

# About twenty minutes on two cores.
bench-peers: servers
	$(PEERS) $(GO) run . $(PEERFLAGS)

# A few minutes.
bench-check:
	@GO='$(GO)' bash .ci/bench-check '$(BASE)' '$(HEAD)'

# Fails where an operation takes more instructions than .ci/instructions says. Needs
# valgrind, and is skipped without.
instructions:
	@GO='$(GO)' bash .ci/instructions

fmt:
	$(GOLANGCI_LINT) fmt ./...
	$(PEERS) $(GOLANGCI_LINT) fmt ./...

# The tests start redis-server and memcached themselves, on ports of their own, so all
# that they need is the programs.
servers:
	@bash .ci/servers
