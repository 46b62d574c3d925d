package memcached

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/bradfitz/gomemcache/memcache"
)

const (
	// maxKeySize is the longest key in bytes that memcached takes.
	maxKeySize = 250

	// hashedMark begins the keys that are made of hashes. A user's key that begins so
	// is hashed too, so that the two kinds never meet.
	hashedMark = "terrace#"

	// flagKeyed is in the flags of an item whose value has the original key behind it.
	flagKeyed = 0x54_4b_45_59
)

// itemKey is a key as the server knows it. Keys that memcached does not take (empty,
// too long, with blanks, control characters or bytes beyond ASCII) are hashed; their
// items carry the original key, and a reader compares it.
type itemKey struct {
	name     string // what the server is asked for
	original string // the user's key with the prefix
	hashed   bool
}

func newItemKey(original string) itemKey {
	if isPlain(original) {
		return itemKey{name: original, original: original}
	}
	sum := sha256.Sum256([]byte(original))
	return itemKey{name: hashedMark + base64.RawURLEncoding.EncodeToString(sum[:]), original: original, hashed: true}
}

func isPlain(key string) bool {
	if key == "" || len(key) > maxKeySize || strings.HasPrefix(key, hashedMark) {
		return false
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] >= 0x7f {
			return false
		}
	}
	return true
}

// item makes the item that keeps value under the key. It copies value: the item may
// be sent after the caller has gone.
//
// The original key stands behind the value and not before it, so that an item begins
// with the value's head whatever its key.
func (k itemKey) item(value []byte, expiration int32) *memcache.Item {
	if !k.hashed {
		return &memcache.Item{Key: k.name, Value: slices.Clone(value), Expiration: expiration}
	}
	b := make([]byte, 0, k.size(value))
	b = append(b, value...)
	b = append(b, k.original...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(k.original)))
	return &memcache.Item{Key: k.name, Value: b, Flags: flagKeyed, Expiration: expiration}
}

// size is that of the item's value.
func (k itemKey) size(value []byte) int {
	if !k.hashed {
		return len(value)
	}
	return len(value) + len(k.original) + 4
}

// value returns what the item keeps for the key: nil for an item that is another
// key's.
func (k itemKey) value(item *memcache.Item) []byte {
	if item == nil {
		return nil
	}
	b := item.Value
	if k.hashed {
		end := len(b) - 4
		if item.Flags != flagKeyed || end < 0 {
			return nil
		}
		size := int64(binary.BigEndian.Uint32(b[end:]))
		if size > int64(end) || string(b[end-int(size):end]) != k.original {
			return nil
		}
		b = b[:end-int(size)]
	}
	return slices.Clip(b) // never nil: an item holds at least an empty value
}
