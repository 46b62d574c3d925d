package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/backends/internal/failure"
	"github.com/terracecache/terrace/tier"
)

const (
	// batchKeys is how many keys one round trip carries at most: enough that round
	// trips do not count, and so few that the server, which does one thing at a time,
	// serves others in between.
	batchKeys = 1000

	// batchBytes is how many bytes of values one round trip writes, unless one value
	// is larger.
	batchBytes = 4 << 20
)

// GetMany implements [tier.BytesBatcher]: by MGET on a single server, by pipelined
// GETs where the keys are spread over several. What is no string in Redis counts as
// nothing.
func (s *Store) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	values := make([][]byte, len(keys))
	read := s.pipelineGet
	if s.single() {
		read = s.mget
	}
	var failed failure.Set
	for start := 0; start < len(keys); start += batchKeys {
		chunk := s.prefixed(keys[start:min(start+batchKeys, len(keys))])
		got, err := call(ctx, s, "get many", func(bool) ([][]byte, error) { return read(ctx, chunk) })
		copy(values[start:], got)
		if failed.Add(err); s.givesUp(ctx, err) {
			break
		}
	}
	return values, failed.Join()
}

// single reports whether all keys are on one server.
func (s *Store) single() bool {
	_, ok := s.client.(*redis.Client)
	return ok
}

// givesUp reports whether the rest of a batch would meet the same error. Of a
// Cluster's nodes others may be well.
func (s *Store) givesUp(ctx context.Context, err error) bool {
	return err != nil && (s.single() || ctx.Err() != nil || s.gate.Closed() || s.invalid != nil)
}

func (s *Store) mget(ctx context.Context, keys []string) ([][]byte, error) {
	replies, err := s.client.MGet(ctx, keys...).Result()
	if err != nil {
		return nil, err
	}
	values := make([][]byte, len(keys))
	for i, reply := range replies {
		if text, ok := reply.(string); ok {
			values[i] = []byte(text)
		}
	}
	return values, nil
}

func (s *Store) pipelineGet(ctx context.Context, keys []string) ([][]byte, error) {
	pipe := s.client.Pipeline()
	replies := make([]*redis.StringCmd, len(keys))
	for i, key := range keys {
		replies[i] = pipe.Get(ctx, key)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	values := make([][]byte, len(keys))
	var failed failure.Set
	for i, reply := range replies {
		value, err := found(reply.Bytes())
		if err != nil && !errors.Is(err, tier.ErrUnreadable) {
			failed.Add(err)
		}
		values[i] = value
	}
	return values, failed.Join()
}

// write is one key's part in a batch of writes.
type write struct {
	key   string // with its prefix
	value []byte
	ttl   time.Duration // zero or less: remove
}

// SetMany implements [tier.BytesBatcher] by pipelining. It stops where the server
// cannot be reached; values that the server rejects do not hold up the others.
func (s *Store) SetMany(ctx context.Context, keys []string, values [][]byte, ttls []time.Duration) error {
	if len(values) != len(keys) || len(ttls) != len(keys) {
		return fmt.Errorf("terrace/redis: set many: %d keys, %d values and %d ttls", len(keys), len(values), len(ttls))
	}
	writes, err := s.writes(keys, values, ttls)
	var failed failure.Set
	failed.Add(err)
	for len(writes) > 0 {
		n := chunkSize(writes)
		chunk := make([]write, n)
		for i, w := range writes[:n] {
			w.value = bytes.Clone(w.value) // it may be sent after we have returned
			chunk[i] = w
		}
		rejected, err := call(ctx, s, "set many", func(bool) (error, error) { return s.pipelineWrite(ctx, chunk) })
		failed.Add(s.wrap(ctx, "set many", rejected))
		if failed.Add(err); s.givesUp(ctx, err) {
			break
		}
		writes = writes[n:]
	}
	return failed.Join()
}

// writes returns what is to be written, each key once: a Cluster's client may send a
// key's writes in any order. The error tells of values too large, whose keys are to
// be removed.
func (s *Store) writes(keys []string, values [][]byte, ttls []time.Duration) ([]write, error) {
	last := make(map[string]int, len(keys))
	for i, key := range keys {
		last[key] = i
	}
	var failed failure.Set
	writes := make([]write, 0, len(last))
	for i, key := range keys {
		if last[key] != i {
			continue
		}
		w := write{key: s.key(key), value: values[i], ttl: ttls[i]}
		if w.ttl > 0 && len(w.value) > s.options.MaxValueSize {
			failed.Add(s.tooLarge("set many", w.value))
			w.ttl = 0
		}
		if w.ttl <= 0 {
			w.value = nil
		}
		writes = append(writes, w)
	}
	return writes, failed.Join()
}

// chunkSize returns how many of the writes, of which there is one at least, go in
// one round trip.
func chunkSize(writes []write) int {
	size := 0
	for i, w := range writes {
		size += len(w.value)
		if i == batchKeys || i > 0 && size > batchBytes {
			return i
		}
	}
	return len(writes)
}

// pipelineWrite makes the writes and removes what was under keys whose new value the
// server rejects. It tells rejections from a failure to reach the server.
func (s *Store) pipelineWrite(ctx context.Context, writes []write) (rejected, err error) {
	pipe := s.client.Pipeline()
	for _, w := range writes {
		if w.ttl <= 0 {
			pipe.Del(ctx, w.key)
		} else {
			pipe.Set(ctx, w.key, w.value, expiry(w.ttl))
		}
	}
	replies, _ := pipe.Exec(ctx) // each command has its own error
	var refused, lost failure.Set
	clean := s.client.Pipeline()
	for i, reply := range replies {
		switch err := reply.Err(); {
		case isReply(err):
			refused.Add(err)
			clean.Del(ctx, writes[i].key)
		default:
			lost.Add(err)
		}
	}
	if clean.Len() > 0 {
		if _, err := clean.Exec(ctx); err != nil {
			refused.Add(fmt.Errorf("what some keys held before may still be there: %w", err))
		}
	}
	return refused.Join(), lost.Join()
}

// DeleteMany implements [tier.BytesBatcher] by pipelining.
func (s *Store) DeleteMany(ctx context.Context, keys []string) error {
	var failed failure.Set
	for start := 0; start < len(keys); start += batchKeys {
		chunk := s.prefixed(keys[start:min(start+batchKeys, len(keys))])
		err := do(ctx, s, "delete many", func() error { return s.pipelineRemove(ctx, chunk, redis.Pipeliner.Del) })
		if failed.Add(err); s.givesUp(ctx, err) {
			break
		}
	}
	return failed.Join()
}

// pipelineRemove sends one command a key: keys of different slots may not share one.
func (s *Store) pipelineRemove(ctx context.Context, keys []string, remove func(redis.Pipeliner, context.Context, ...string) *redis.IntCmd) error {
	pipe := s.client.Pipeline()
	for _, key := range keys {
		remove(pipe, ctx, key)
	}
	replies, _ := pipe.Exec(ctx) // each command has its own error
	var failed failure.Set
	for _, reply := range replies {
		failed.Add(reply.Err())
	}
	return failed.Join()
}

func (s *Store) prefixed(keys []string) []string {
	full := make([]string, len(keys))
	for i, key := range keys {
		full[i] = s.key(key)
	}
	return full
}
