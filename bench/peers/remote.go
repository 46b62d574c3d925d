package main

import (
	"context"
	"time"
)

// remoteCache is a contestant that asks a server, as the loops call it.
type remoteCache interface {
	get(ctx context.Context, key string) ([]byte, error)
	set(ctx context.Context, key string, value []byte) error
	close()
}

// batcher is a contestant that asks a server for many keys at once.
type batcher interface {
	// getMany returns the number of keys found.
	getMany(ctx context.Context, keys []string) (int, error)
	set(ctx context.Context, key string, value []byte) error
	close()
}

// remoteContestant is a client that is measured one key at a time.
type remoteContestant struct {
	name   string
	module string
	server serverKind
	open   func(remoteSetup) (remoteCache, error)
}

// batchContestant is a client that is measured by batches.
type batchContestant struct {
	name   string
	module string
	server serverKind
	open   func(remoteSetup) (batcher, error)
}

// remoteSetup is what a contestant is opened with.
type remoteSetup struct {
	address    string
	goroutines int // that will use it
}

// remoteTTL ends what a run that was killed leaves behind.
const remoteTTL = 10 * time.Minute
