package memcached

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

// Options are what [Open] and [NewWith] can be told.
type Options struct {
	// Servers are the servers as host:port, or as the path of a Unix socket, which has
	// a slash. Keys are spread over them by rendezvous hashing: of n+1
	// servers one that joins or leaves moves one key in n+1. Names are looked up when a
	// connection is made. For Open only.
	Servers []string

	// Prefix is put before each key, to tell them from those of others. It is of
	// printable ASCII without spaces, and leaves room for a hashed key: 100 bytes at
	// most.
	Prefix string

	// MaxConnections bounds the connections to each server, and so the calls under way
	// at a time, those included whose callers' contexts have ended; further callers
	// wait within their context. As many are kept when idle. From 2 on one of them is for
	// Gets that are alone, where Gets are gathered, and from 8 on half of the others are
	// for reads and half for writes. Zero: 64.
	MaxConnections int

	// Gather is how many keys one round trip of Gets carries at most. Gets that are
	// under way at the same time share round trips: each waits within its own context,
	// and a Get that finds none or few under way goes at once. 1: every Get makes a
	// round trip of its own. Zero: 128.
	Gather int

	// Timeout bounds each read and write of a socket, and dialling. It is what ends a
	// call whose caller has left, so it should not be much longer than the tier's
	// timeout. For Open only. Zero: 500 ms.
	Timeout time.Duration

	// MaxValueSize is the size in bytes of the largest value that is sent; a larger one
	// is answered with tier.ErrTooLarge, as is one that the server finds too large (its
	// -I option, 1 MiB by default, less some bytes for the key). Set it to that to save
	// the sending. Zero: 1 GiB, the most that memcached can be told.
	MaxValueSize int

	// DialContext makes the connections. With TLS it is that of a tls.Dialer. For Open
	// only. Nil: that of a net.Dialer.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	defaultMaxConnections = 64
	defaultGather         = 128
	defaultMaxValueSize   = 1 << 30

	// maxKey is the longest key in bytes that memcached takes.
	maxKey = 250

	// maxPrefix leaves room for a hashed key behind the prefix.
	maxPrefix = 100
)

// Validate returns what is wrong with the options for [Open], or nil.
func (o Options) Validate() error {
	if err := checkServers(o.Servers); err != nil {
		return err
	}
	return o.validate()
}

// validate checks what does not say how to connect.
func (o Options) validate() error {
	switch {
	case len(o.Prefix) > maxPrefix:
		return fmt.Errorf("terrace/memcached: Prefix has %d bytes: want %d at most", len(o.Prefix), maxPrefix)
	case !isGraphic(o.Prefix):
		return fmt.Errorf("terrace/memcached: Prefix %q: want printable ASCII without spaces", o.Prefix)
	case o.MaxConnections < 0:
		return fmt.Errorf("terrace/memcached: MaxConnections %d: want at least 1, or zero for %d", o.MaxConnections, defaultMaxConnections)
	case o.Gather < 0:
		return fmt.Errorf("terrace/memcached: Gather %d: want at least 1, or zero for %d", o.Gather, defaultGather)
	case o.Timeout < 0:
		return fmt.Errorf("terrace/memcached: Timeout %v: want a time, or zero for %v", o.Timeout, memcache.DefaultTimeout)
	case o.MaxValueSize < 0 || o.MaxValueSize > defaultMaxValueSize:
		return fmt.Errorf("terrace/memcached: MaxValueSize %d: want at most %d bytes, or zero for that", o.MaxValueSize, defaultMaxValueSize)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.MaxConnections < 1 {
		o.MaxConnections = defaultMaxConnections
	}
	if o.Gather < 1 {
		o.Gather = defaultGather
	}
	if o.Timeout < 1 {
		o.Timeout = memcache.DefaultTimeout
	}
	if o.MaxValueSize < 1 {
		o.MaxValueSize = defaultMaxValueSize
	}
	return o
}
