package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/internal/gate"
	"github.com/terracecache/terrace/backends/internal/lone"
	"github.com/terracecache/terrace/tier"
)

// drainWithin bounds how long Close waits for calls under way: those of a client of
// our own end at once, since their connections are closed; those of another's when
// its timeouts say so.
const drainWithin = time.Second

// Store is a [tier.Bytes] that can batch, write on condition and, with a prefix, be
// cleared.
type Store struct {
	client  redis.UniversalClient
	owned   bool // Close closes the client
	options Options
	invalid error
	gate    *gate.Gate

	gatherers *gatherers         // nil: reads go alone
	line      *lone.Line[[]byte] // of a gatherer's reads that are alone; may be nil
	tracks    tracks
}

var (
	_ tier.Bytes        = (*Store)(nil)
	_ tier.BytesBatcher = (*Store)(nil)
	_ tier.BytesSwapper = (*Store)(nil)
	_ tier.BytesTracker = (*Store)(nil)
	_ tier.Clearer      = (*Store)(nil)
	_ tier.Partial      = (*Store)(nil)
	_ tier.Validator    = (*Store)(nil)
)

// New returns a store over a client, which stays the caller's: Close does not close
// it.
func New(client redis.UniversalClient) *Store { return NewWith(client, Options{}) }

// NewWith is [New] with options. If these are wrong, [Store.Validate] tells so, and
// all other methods answer with the same error.
func NewWith(client redis.UniversalClient, o Options) *Store {
	invalid := o.Validate()
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		invalid = errors.New("terrace/redis: the client is nil")
	}
	o = o.withDefaults()
	s := &Store{client: client, options: o, invalid: invalid, gate: gate.New(o.MaxCalls)}
	if invalid == nil && o.Gather > 1 {
		s.gatherers = newGatherers(s)
	}
	return s
}

// Validate implements [tier.Validator].
func (s *Store) Validate() error { return s.invalid }

// Can implements [tier.Partial]: without a prefix the store cannot be cleared.
func (s *Store) Can(c tier.Capability) bool {
	switch c {
	case tier.CanBatch, tier.CanSwap:
		return true
	case tier.CanClear:
		return s.options.Prefix != ""
	case tier.CanTrack:
		return s.canTrack()
	default:
		return false
	}
}

// Punctual implements [tier.Punctual]: go-redis is left behind where it does not heed the
// context.
func (s *Store) Punctual() bool { return true }

// Forgetful implements [tier.Forgetful]. Where reads are not gathered go-redis has their
// contexts, and that of a Cluster to choose a server.
func (s *Store) Forgetful() bool { return s.gatherers != nil && s.gatherers.only != nil }

// String names the store and its prefix, and no address or credentials.
func (s *Store) String() string { return fmt.Sprintf("redis(prefix %q)", s.options.Prefix) }

// GoString is String, so that no way to print a store shows its client.
func (s *Store) GoString() string { return s.String() }

// Close implements [tier.Bytes]. It closes the client that [Open] or [OpenClient]
// made, and leaves one that was given to [New] as it is. Calls under way may fail.
func (s *Store) Close() error {
	if !s.gate.Close() {
		return nil
	}
	s.tracks.close()
	if s.gatherers != nil {
		s.gatherers.Close()
	}
	var err error
	if s.owned {
		err = s.client.Close()
	}
	limit := time.Now().Add(drainWithin)
	if s.line != nil {
		s.line.Close(drainWithin)
	}
	s.gate.Drain(time.Until(limit))
	if err != nil {
		return fmt.Errorf("terrace/redis: close: %w", err)
	}
	return nil
}

// Get implements [tier.Bytes]. What is no string in Redis (a hash, a list) is a
// [tier.ErrUnreadable].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if s.gatherers != nil {
		return s.getGathered(ctx, s.key(key))
	}
	return call(ctx, s, "get", func(bool) ([]byte, error) {
		value, err := s.client.Get(ctx, s.key(key)).Bytes()
		return found(value, err)
	})
}

// found tells nothing from an empty value.
func found(value []byte, err error) ([]byte, error) {
	switch {
	case err == nil && value == nil:
		return []byte{}, nil
	case err == nil:
		return value, nil
	case errors.Is(err, redis.Nil):
		return nil, nil
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return nil, &tier.UnreadableError{Reason: "type"}
	default:
		return nil, err
	}
}

// Set implements [tier.Bytes]. Redis counts in milliseconds. Where the server rejects
// the value (out of memory, cannot persist) what the key held before is removed, if
// the server lets it.
func (s *Store) Set(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	switch {
	case ttl <= 0:
		return s.Delete(ctx, key)
	case len(value) > s.options.MaxValueSize:
		return errors.Join(s.tooLarge("set", value), s.Delete(ctx, key))
	}
	value = bytes.Clone(value) // the command may be sent after we have returned
	return do(ctx, s, "set", func() error {
		err := s.client.Set(ctx, s.key(key), value, expiry(ttl)).Err()
		if isReply(err) {
			if delErr := s.client.Del(ctx, s.key(key)).Err(); delErr != nil {
				return fmt.Errorf("%w (and what the key held before may still be there: %w)", err, delErr)
			}
		}
		return err
	})
}

// Delete implements [tier.Bytes].
func (s *Store) Delete(ctx context.Context, key string) error {
	return do(ctx, s, "delete", func() error { return s.client.Del(ctx, s.key(key)).Err() })
}

func (s *Store) key(key string) string { return s.options.Prefix + key }

func (s *Store) tooLarge(doing string, value []byte) error {
	return fmt.Errorf("terrace/redis: %s: %w: %d bytes, at most %d are taken", doing, tier.ErrTooLarge, len(value), s.options.MaxValueSize)
}

// expiry turns a ttl above zero into what go-redis takes: whole milliseconds, and
// zero for none. It rounds up, so that nothing goes early or lives for ever.
func expiry(ttl time.Duration) time.Duration {
	if ttl == tier.Forever {
		return 0
	}
	rest := ttl % time.Millisecond
	if rest == 0 || ttl > tier.Forever-time.Millisecond { // 292 years: no room to round up
		return ttl - rest
	}
	return ttl - rest + time.Millisecond
}
