package memcached

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/tier"
)

// swapTries bounds how often a write on condition begins anew because others write
// the key without changing its head.
const swapTries = 16

var (
	errOutcomeUnknown = errors.New("the connection was lost, and the key was written again before it could be told whether this write was made")
	errContended      = errors.New("the key kept changing")
)

// SetIf implements [tier.BytesSwapper] by gets and cas, or add where there is nothing.
// What other programs wrote has an empty head. If the condition holds and the value
// cannot be kept (too large, rejected by the server), the key's item is removed, as
// Set does.
func (s *Store) SetIf(ctx context.Context, key string, value []byte, ttl time.Duration, head []byte) (bool, error) {
	head = bytes.Clone(head) // it may be read after we have returned
	if len(value) > s.options.MaxValueSize {
		removed, err := s.setIf(ctx, key, s.tombstone(key), head)
		if err == nil && removed {
			err = s.tooLarge(value)
		}
		return false, err
	}
	item := s.tombstone(key)
	if ttl > 0 {
		item = s.newItem(key, value, ttl)
	}
	return s.setIf(ctx, key, item, head)
}

// tombstone returns an item that is gone once it is stored: memcached has no delete
// on condition.
func (s *Store) tombstone(key string) *memcache.Item {
	item := s.newItem(key, nil, time.Second)
	item.Expiration = gone
	return item
}

func (s *Store) setIf(ctx context.Context, key string, item *memcache.Item, head []byte) (bool, error) {
	sv := s.of(item.Key)
	return call(ctx, s, sv, "set on condition", func() (bool, error) {
		var lost error // what became of an earlier try whose answer did not come
		for range swapTries {
			held, err := sv.get(ctx, item.Key)
			switch {
			case err != nil:
				return false, errors.Join(lost, err)
			case lost != nil && isSame(held, item):
				return true, nil
			case !bytes.Equal(s.headOf(held, key), head):
				if lost != nil {
					return false, fmt.Errorf("%w: %w", errOutcomeUnknown, lost)
				}
				return false, nil
			}
			err = sv.replace(held, item)
			switch {
			case err == nil:
				return true, nil
			case errors.Is(err, memcache.ErrCASConflict), errors.Is(err, memcache.ErrNotStored), errors.Is(err, memcache.ErrCacheMiss):
				// Written or dropped since we looked: look again.
			case isReply(err):
				_ = sv.replace(held, s.tombstone(key)) // if it fails the key was written again, or the server is gone
				return false, rejected(err, item)
			case lost == nil && sv.reconnect(ctx, err):
				lost = err
			default:
				return false, err
			}
		}
		return false, errors.Join(errContended, lost)
	})
}

func (s *Store) headOf(held *memcache.Item, key string) []byte {
	if held == nil {
		return nil
	}
	value, ours := s.valueOf(itemOf(held), key)
	if !ours {
		return nil // as Get gives nothing of it, and the next write must get through
	}
	return value[:min(len(value), tier.HeadSize)]
}

// replace puts item in the place of held, which is nil where there was nothing.
func (sv *server) replace(held, item *memcache.Item) error {
	switch {
	case held != nil:
		item.CasID = held.CasID
		return replied(sv.client.CompareAndSwap(item))
	case item.Expiration == gone:
		return nil
	default:
		return replied(sv.client.Add(item))
	}
}

// isSame reports whether held is what storing item leaves.
func isSame(held, item *memcache.Item) bool {
	if held == nil || item.Expiration == gone {
		return held == nil && item.Expiration == gone
	}
	return held.Flags == item.Flags && bytes.Equal(held.Value, item.Value)
}
