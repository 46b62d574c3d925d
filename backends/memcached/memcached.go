package memcached

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/backends/internal/gate"
	"github.com/terracecache/terrace/tier"
)

// drainWithin bounds how long Close waits for calls under way: those of a client of
// our own end at once, since their connections are closed; those of another's when
// its timeouts say so.
const drainWithin = time.Second

// Store is a [tier.Bytes] that can batch and write on condition.
type Store struct {
	client  *memcache.Client
	servers *selector    // nil: the client is another's, and knows its servers
	conns   *connections // nil: the client is another's
	options Options
	invalid error
	gate    *gate.Gate

	gatherers *gatherers // nil: reads go alone
}

var (
	_ tier.Bytes        = (*Store)(nil)
	_ tier.BytesBatcher = (*Store)(nil)
	_ tier.BytesSwapper = (*Store)(nil)
	_ tier.Validator    = (*Store)(nil)
)

// Open returns a store with a client of its own, which Close closes. It does not
// connect: a server that is down is met by the first call of one of its keys. No
// other server takes its keys over, since what that one gathered would be stale once
// the first is back.
func Open(o Options) (*Store, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	servers := newSelector(o.Servers)
	c := memcache.NewFromSelector(servers)
	c.Timeout = o.Timeout
	c.MaxIdleConns = o.MaxConnections
	conns := newConnections(o.DialContext, o.Servers)
	c.DialContext = conns.DialContext
	s := &Store{client: c, servers: servers, conns: conns, options: o, gate: gate.New(o.MaxConnections)}
	s.gatherReads()
	return s, nil
}

// New returns a store over a client, which stays the caller's: Close does not close
// it. Raise the client's MaxIdleConns, which is 2, to [Options.MaxConnections], else
// most calls dial.
func New(client *memcache.Client) *Store { return NewWith(client, Options{}) }

// NewWith is [New] with options; those that say how to connect have no effect. If
// they are wrong, [Store.Validate] tells so, and all other methods answer with the
// same error.
func NewWith(client *memcache.Client, o Options) *Store {
	invalid := o.validate()
	if client == nil {
		invalid = errors.New("terrace/memcached: the client is nil")
	}
	o = o.withDefaults()
	s := &Store{client: client, options: o, invalid: invalid, gate: gate.New(o.MaxConnections)}
	s.gatherReads()
	return s
}

func (s *Store) gatherReads() {
	if s.invalid == nil && s.options.Gather > 1 {
		s.gatherers = newGatherers(s)
	}
}

// Validate implements [tier.Validator].
func (s *Store) Validate() error { return s.invalid }

// Punctual implements [tier.Punctual]: gomemcache is left behind where it does not heed the
// context.
func (s *Store) Punctual() bool { return true }

// Forgetful implements [tier.Forgetful]: gomemcache knows no contexts.
func (s *Store) Forgetful() bool { return true }

// String names the store and its prefix.
func (s *Store) String() string { return fmt.Sprintf("memcached(prefix %q)", s.options.Prefix) }

// Close implements [tier.Bytes]. It closes the connections of a client that [Open]
// made, so that calls under way fail, and leaves a client that was given to [New] as it
// is.
func (s *Store) Close() error {
	if !s.gate.Close() {
		return nil
	}
	if s.gatherers != nil {
		s.gatherers.Close()
	}
	if s.conns != nil {
		s.conns.Close()
	}
	s.gate.Drain(drainWithin)
	if s.conns != nil {
		_ = s.client.Close() // to forget the connections, which are closed
	}
	return nil
}

// Get implements [tier.Bytes]. An item that another program wrote is a
// [tier.ErrUnreadable].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	itemKey, hashed := s.itemKey(key)
	get := s.getAlone
	if s.gatherers != nil {
		get = s.getGathered
	}
	item, err := get(ctx, itemKey)
	if item == nil {
		return nil, err
	}
	value, ours := unwrap(item, key, hashed)
	if !ours {
		return nil, fmt.Errorf("terrace/memcached: get: %w", &tier.UnreadableError{Reason: "type"})
	}
	return value, nil
}

// get returns nil where there is nothing.
func (s *Store) get(ctx context.Context, key string) (*memcache.Item, error) {
	itemKey, _ := s.itemKey(key)
	return s.getItem(ctx, itemKey)
}

func (s *Store) getItem(ctx context.Context, itemKey string) (item *memcache.Item, err error) {
	err = s.redo(ctx, func() error {
		item, err = s.client.Get(itemKey)
		return err
	})
	if err != nil {
		return nil, ignoreMiss(err)
	}
	return item, nil
}

// Set implements [tier.Bytes]. Memcached counts in seconds: the value is kept for up
// to two more than ttl, and until 2038 at most. Where the server rejects the value
// what the key held before is removed.
func (s *Store) Set(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	switch {
	case ttl <= 0:
		return s.Delete(ctx, key)
	case len(value) > s.options.MaxValueSize:
		return errors.Join(s.tooLarge(value), s.Delete(ctx, key))
	}
	item := s.newItem(key, value, ttl)
	return do(ctx, s, "set", func() error {
		err := s.redo(ctx, func() error { return s.client.Set(item) })
		if !isReply(err) {
			return err
		}
		if delErr := s.remove(ctx, key); delErr != nil {
			err = fmt.Errorf("%w (and what the key held before may still be there: %w)", err, delErr)
		}
		return rejected(err, item)
	})
}

func (s *Store) tooLarge(value []byte) error {
	return fmt.Errorf("terrace/memcached: set: %w: %d bytes, at most %d are taken", tier.ErrTooLarge, len(value), s.options.MaxValueSize)
}

// Delete implements [tier.Bytes].
func (s *Store) Delete(ctx context.Context, key string) error {
	return do(ctx, s, "delete", func() error { return s.remove(ctx, key) })
}

func (s *Store) remove(ctx context.Context, key string) error {
	itemKey, _ := s.itemKey(key)
	return s.redo(ctx, func() error { return ignoreMiss(s.client.Delete(itemKey)) })
}
