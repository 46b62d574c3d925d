package main

import (
	"context"

	"github.com/terracecache/terrace/tier"
)

// remote is a server, or several, that l3 can be.
type remote struct {
	kind  string                                        // "redis" or "memcached"
	label string                                        // for people, without secrets
	open  func(ctx context.Context) (tier.Bytes, error) // a store that nobody else uses
	ping  func(ctx context.Context) error
	clear func(keys []string, b tier.Bytes)
}

func openRemotes(context.Context, *settings) ([]*remote, error) { return nil, nil }

func closeRemotes([]*remote) {}
