# Two commands on a fresh machine with Go and apt do everything: `go run ./bench`
# and `make test`.

GO ?= go

# golangci-lint is run at a fixed version through the module proxy, in a module graph
# of its own: none of what it depends on gets into go.mod. The first run compiles it
# (about two minutes on two cores), later ones take it from the build cache.
GOLANGCI_LINT ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# Arguments for the tests and for the bench: make test TESTFLAGS='-run TestFence',
# make bench BENCHFLAGS='--seconds 5'.
TESTFLAGS ?=
BENCHFLAGS ?=

.PHONY: all test vet lint bench fmt servers

all: vet lint test

test: servers
	$(GO) test -race -timeout 20m $(TESTFLAGS) ./...

vet:
	$(GO) vet ./...

lint: vet
	$(GOLANGCI_LINT) run ./...

bench:
	$(GO) run ./bench $(BENCHFLAGS)

fmt:
	$(GOLANGCI_LINT) fmt ./...

# The tests start redis-server and memcached themselves, on ports of their own, so all
# that they need is the programs.
servers:
	@bash .ci/servers
