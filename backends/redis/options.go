package redis

import (
	"fmt"
	"time"
)

// Options are what [NewWith], [Open] and [OpenClient] can be told.
type Options struct {
	// Prefix is put before each key. With one, the store can be cleared; without, it
	// cannot, since nothing tells its keys from those of others. Of two stores in one
	// database neither prefix may begin with the other, so end them alike: "products:".
	Prefix string

	// MaxCalls bounds the calls under way at a time, those included whose callers'
	// contexts have ended; further callers wait within their context. It should
	// exceed the client's pool. Zero: 512.
	MaxCalls int

	// Gather is how many keys one round trip of Gets carries at most. Gets that are
	// under way at the same time share round trips: each waits within its own context,
	// and a Get that finds none or few under way goes at once. 1: every Get makes a
	// round trip of its own. Zero: 128.
	Gather int

	// MaxValueSize is the size in bytes of the largest value that is sent; a larger
	// one is answered with tier.ErrTooLarge. Set it where the server's
	// proto-max-bulk-len is not the default. Zero: 512 MiB.
	MaxValueSize int

	// Tracking says how the connection is kept that tells of changes, where a cache asks
	// for that: see [Store.Track].
	Tracking TrackingOptions
}

// TrackingOptions say how a tracking's connection is kept.
type TrackingOptions struct {
	// Timeout bounds each try to connect. Zero: 1 s.
	Timeout time.Duration

	// Ping is how often the connection is tried, from both ends: one that has been
	// silent for three times as long is given up for lost. Zero: 1 s.
	Ping time.Duration

	// Buffer is how many bytes of changed keys wait for the handler at most. Zero: 8 MiB.
	Buffer int
}

func (o TrackingOptions) validate() error {
	switch {
	case o.Timeout < 0:
		return fmt.Errorf("terrace/redis: tracking Timeout %v: want more than zero, or zero for %v", o.Timeout, defaultBusTimeout)
	case o.Ping < 0:
		return fmt.Errorf("terrace/redis: tracking Ping %v: want more than zero, or zero for %v", o.Ping, defaultBusPing)
	case o.Buffer < 0:
		return fmt.Errorf("terrace/redis: tracking Buffer %d: want a number of bytes, or zero for %d", o.Buffer, defaultBusBuffer)
	}
	return nil
}

func (o TrackingOptions) withDefaults() TrackingOptions {
	if o.Timeout == 0 {
		o.Timeout = defaultBusTimeout
	}
	if o.Ping == 0 {
		o.Ping = defaultBusPing
	}
	if o.Buffer == 0 {
		o.Buffer = defaultBusBuffer
	}
	return o
}

const (
	defaultMaxCalls     = 512
	defaultGather       = 128
	defaultMaxValueSize = 512 << 20
)

// Validate returns what is wrong with the options, or nil.
func (o Options) Validate() error {
	switch {
	case o.MaxCalls < 0:
		return fmt.Errorf("terrace/redis: MaxCalls %d: want at least 1, or zero for %d", o.MaxCalls, defaultMaxCalls)
	case o.Gather < 0:
		return fmt.Errorf("terrace/redis: Gather %d: want at least 1, or zero for %d", o.Gather, defaultGather)
	case o.MaxValueSize < 0:
		return fmt.Errorf("terrace/redis: MaxValueSize %d: want a number of bytes, or zero for %d", o.MaxValueSize, defaultMaxValueSize)
	}
	return o.Tracking.validate()
}

func (o Options) withDefaults() Options {
	if o.MaxCalls < 1 {
		o.MaxCalls = defaultMaxCalls
	}
	if o.Gather < 1 {
		o.Gather = defaultGather
	}
	if o.MaxValueSize < 1 {
		o.MaxValueSize = defaultMaxValueSize
	}
	o.Tracking = o.Tracking.withDefaults()
	return o
}
