package memcached

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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
	servers  []*server // one at least
	selector *selector // of more than one
	options  Options
	invalid  error
	closed   atomic.Bool
	closing  sync.Once // who closes it too waits as long
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
	s := &Store{selector: newSelector(o.Servers), options: o}
	watches := watchAll(o.Servers)
	for i, name := range o.Servers {
		sv := newServer(name, o)
		sv.watch = watches[i]
		sv.gather(o.Gather)
		s.servers = append(s.servers, sv)
	}
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
	sv := &server{client: client, gate: gate.New(o.MaxConnections), apart: new(spell)}
	sv.readGate = sv.gate
	if invalid == nil {
		sv.gather(o.Gather)
	}
	return &Store{servers: []*server{sv}, options: o, invalid: invalid}
}

// ours reports whether the clients are of our own.
func (s *Store) ours() bool { return s.servers[0].conns != nil }

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
	s.closing.Do(s.close)
	return nil
}

func (s *Store) close() {
	s.closed.Store(true)
	for _, sv := range s.servers {
		sv.close()
	}
	limit := time.Now().Add(drainWithin)
	for _, sv := range s.servers {
		sv.gate.Drain(time.Until(limit))
		if sv.readers != nil {
			sv.readGate.Drain(time.Until(limit))
		}
		if sv.line != nil {
			sv.line.Close(time.Until(limit))
		}
		if sv.conns != nil {
			sv.dropIdle() // to forget the connections, which are closed
		}
	}
}

// Get implements [tier.Bytes]. An item that another program wrote is a
// [tier.ErrUnreadable].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	itemKey, hashed := s.itemKey(key)
	held, err := s.get(ctx, s.of(itemKey), itemKey)
	if held.value == nil {
		return nil, err
	}
	value, ours := unwrap(held, key, hashed)
	if !ours {
		return nil, fmt.Errorf("terrace/memcached: get: %w", &tier.UnreadableError{Reason: "type"})
	}
	return value, nil
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
	sv := s.of(item.Key)
	return do(ctx, s, sv, "set", func() error {
		err := sv.redo(ctx, func() error { return sv.client.Set(item) })
		if !isReply(err) {
			return err
		}
		if delErr := sv.remove(ctx, item.Key); delErr != nil {
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
	itemKey, _ := s.itemKey(key)
	sv := s.of(itemKey)
	return do(ctx, s, sv, "delete", func() error { return sv.remove(ctx, itemKey) })
}
