package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

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
	if _, single := s.client.(*redis.Client); single {
		read = s.mget
	}
	for start := 0; start < len(keys); start += batchKeys {
		chunk := s.prefixed(keys[start:min(start+batchKeys, len(keys))])
		got, err := call(ctx, s, "get many", func(bool) ([][]byte, error) { return read(ctx, chunk) })
		copy(values[start:], got)
		if err != nil {
			return values, err
		}
	}
	return values, nil
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
	var failed failures
	for i, reply := range replies {
		value, err := found(reply.Bytes())
		if err != nil && !errors.Is(err, tier.ErrUnreadable) {
			failed.add(err)
		}
		values[i] = value
	}
	return values, failed.join()
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
	last := make(map[string]int, len(keys)) // a Cluster client may send a key's writes in any order
	for i, key := range keys {
		last[key] = i
	}
	var failed failures
	var chunk []write
	size := 0
	flush := func() error {
		writes := chunk
		chunk, size = nil, 0
		if len(writes) == 0 {
			return nil
		}
		rejected, err := call(ctx, s, "set many", func(bool) (error, error) { return s.pipelineWrite(ctx, writes) })
		failed.add(s.wrap(ctx, "set many", rejected))
		return err
	}
	for i, key := range keys {
		if last[key] != i {
			continue
		}
		w := write{key: s.key(key), ttl: ttls[i]}
		switch {
		case w.ttl <= 0:
		case len(values[i]) > s.options.MaxValueSize:
			failed.add(s.tooLarge("set many", values[i]))
			w.ttl = 0
		default:
			w.value = bytes.Clone(values[i]) // it may be sent after we have returned
		}
		if len(chunk) == batchKeys || size > 0 && size+len(w.value) > batchBytes {
			if err := flush(); err != nil {
				return errors.Join(failed.join(), err)
			}
		}
		chunk, size = append(chunk, w), size+len(w.value)
	}
	if err := flush(); err != nil {
		return errors.Join(failed.join(), err)
	}
	return failed.join()
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
	var refused, lost failures
	clean := s.client.Pipeline()
	for i, reply := range replies {
		switch err := reply.Err(); {
		case isReply(err):
			refused.add(err)
			clean.Del(ctx, writes[i].key)
		default:
			lost.add(err)
		}
	}
	if clean.Len() > 0 {
		if _, err := clean.Exec(ctx); err != nil {
			refused.add(fmt.Errorf("what some keys held before may still be there: %w", err))
		}
	}
	return refused.join(), lost.join()
}

// DeleteMany implements [tier.BytesBatcher] by pipelining.
func (s *Store) DeleteMany(ctx context.Context, keys []string) error {
	for start := 0; start < len(keys); start += batchKeys {
		chunk := s.prefixed(keys[start:min(start+batchKeys, len(keys))])
		err := do(ctx, s, "delete many", func() error { return s.pipelineRemove(ctx, chunk, redis.Pipeliner.Del) })
		if err != nil {
			return err
		}
	}
	return nil
}

// pipelineRemove sends one command a key: keys of different slots may not share one.
func (s *Store) pipelineRemove(ctx context.Context, keys []string, remove func(redis.Pipeliner, context.Context, ...string) *redis.IntCmd) error {
	pipe := s.client.Pipeline()
	for _, key := range keys {
		remove(pipe, ctx, key)
	}
	replies, _ := pipe.Exec(ctx) // each command has its own error
	var failed failures
	for _, reply := range replies {
		failed.add(reply.Err())
	}
	return failed.join()
}

func (s *Store) prefixed(keys []string) []string {
	full := make([]string, len(keys))
	for i, key := range keys {
		full[i] = s.key(key)
	}
	return full
}

// failures are the errors of many keys, each kind once: a server that is out of
// memory says so for every key.
type failures struct {
	seen     map[string]bool
	distinct []error
}

func (f *failures) add(err error) {
	if err == nil || f.seen[err.Error()] {
		return
	}
	if f.seen == nil {
		f.seen = make(map[string]bool)
	}
	f.seen[err.Error()] = true
	f.distinct = append(f.distinct, err)
}

func (f *failures) join() error {
	if len(f.distinct) == 1 {
		return f.distinct[0]
	}
	return errors.Join(f.distinct...)
}
