package memcached

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/terracecache/terrace/tier"
)

// item is what a server holds under a key; its zero value is nothing.
type item struct {
	value []byte // not nil where there is something
	flags uint32
}

// itemOf returns what gomemcache has read, which is nil for nothing.
func itemOf(read *memcache.Item) item {
	switch {
	case read == nil:
		return item{}
	case read.Value == nil:
		return item{[]byte{}, read.Flags}
	default:
		return item{read.Value, read.Flags}
	}
}

// hashMark begins the item key of a key that memcached cannot take. A key that
// begins with it is hashed itself, so that no plain key is ever taken for a hashed
// one.
const hashMark = "#sha256#"

// What an item's flags say. Items with others are not ours.
const (
	flagsPlain  = 0          // the value alone
	flagsHashed = 0x54724801 // the value, then the key, then the key's length
)

// lengthSize is how many bytes the key's length takes at the end of a hashed item.
const lengthSize = 4

// itemKey returns the key under which memcached keeps what belongs to the key, and
// whether it is hashed.
func (s *Store) itemKey(key string) (string, bool) {
	if key != "" && len(s.options.Prefix)+len(key) <= maxKey && isGraphic(key) && !strings.HasPrefix(key, hashMark) {
		return s.options.Prefix + key, false
	}
	sum := sha256.Sum256([]byte(key))
	return s.options.Prefix + hashMark + base64.RawURLEncoding.EncodeToString(sum[:]), true
}

// isGraphic reports whether the text is of printable ASCII without spaces.
func isGraphic(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] >= 0x7f {
			return false
		}
	}
	return true
}

// newItem makes an item that shares no memory with value. The ttl is above zero.
func (s *Store) newItem(key string, value []byte, ttl time.Duration) *memcache.Item {
	item := &memcache.Item{Expiration: expiration(ttl, time.Now())}
	var hashed bool
	if item.Key, hashed = s.itemKey(key); hashed {
		item.Flags = flagsHashed
		item.Value = slices.Concat(value, []byte(key))
		item.Value = binary.BigEndian.AppendUint32(item.Value, uint32(len(key)))
	} else {
		item.Value = bytes.Clone(value)
	}
	return item
}

// valueOf returns the value that an item holds for the key, which is never nil, or
// false if the item is none of ours or another key's.
func (s *Store) valueOf(held item, key string) ([]byte, bool) {
	_, hashed := s.itemKey(key)
	return unwrap(held, key, hashed)
}

// unwrap is valueOf for who knows whether the item's key is hashed.
func unwrap(held item, key string, hashed bool) ([]byte, bool) {
	if !hashed {
		return slices.Clip(held.value), held.flags == flagsPlain
	}
	size := len(held.value) - lengthSize
	if held.flags != flagsHashed || size < 0 || uint64(binary.BigEndian.Uint32(held.value[size:])) != uint64(len(key)) {
		return nil, false
	}
	value, ours := bytes.CutSuffix(held.value[:size], []byte(key))
	return slices.Clip(value), ours
}

const (
	// maxRelative is the longest expiration that memcached takes for a time from now;
	// beyond, it is a Unix time.
	maxRelative = 30 * 24 * 60 * 60

	// gone is an expiration that lies in the past.
	gone = -1
)

// expiration turns a ttl above zero into memcached's seconds. It rounds up and adds
// one second, since the server's clock ticks once a second: an item with one second
// to live goes at the next tick, which may be now.
func expiration(ttl time.Duration, now time.Time) int32 {
	if ttl == tier.Forever {
		return 0
	}
	seconds := int64(ttl/time.Second) + 1
	if ttl%time.Second > 0 {
		seconds++
	}
	if seconds <= maxRelative {
		return int32(seconds)
	}
	// The protocol ends in 2038. Until then that is as long as it gets; afterwards,
	// and with a clock that is off so far, 30 days are.
	at := min(now.Unix()+seconds, math.MaxInt32)
	if at-now.Unix() <= maxRelative {
		return maxRelative
	}
	return int32(at)
}
