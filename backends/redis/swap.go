package redis

import (
	"bytes"
	"context"
	"crypto/sha1" // it is how Redis names scripts
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/terracecache/terrace/tier"
)

//go:embed setif.lua
var setIfScript string

var setIfSHA = func() string {
	sum := sha1.Sum([]byte(setIfScript))
	return hex.EncodeToString(sum[:])
}()

// What setif.lua answers.
const (
	swapRefused = 0
	swapStored  = 1
	swapUnknown = 2
)

var errOutcomeUnknown = errors.New("the connection was lost, and the key was written again before it could be told whether this write was made")

// once is a command that the client does not repeat by itself: only a script that
// knows that it runs again can tell what its first run did.
type once struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }

// SetIf implements [tier.BytesSwapper] by a script, which touches one key and so runs
// on a Cluster too. What is no string in Redis has an empty head. If the condition
// holds and the value cannot be kept (too large, rejected by the server), the key is
// removed, as Set does.
func (s *Store) SetIf(ctx context.Context, key string, value []byte, ttl time.Duration, head []byte) (bool, error) {
	tooLarge := len(value) > s.options.MaxValueSize
	if tooLarge {
		removed, err := s.setIf(ctx, key, nil, 0, head)
		if err != nil || !removed {
			return false, err
		}
		return false, s.tooLarge("set on condition", value)
	}
	return s.setIf(ctx, key, value, ttl, head)
}

func (s *Store) setIf(ctx context.Context, key string, value []byte, ttl time.Duration, head []byte) (bool, error) {
	value, head = bytes.Clone(value), bytes.Clone(head) // the command may be sent after we have returned
	var life any
	switch {
	case ttl <= 0:
		life = "remove"
	case ttl == tier.Forever:
		life = ""
	default:
		life = expiry(ttl).Milliseconds()
	}
	return call(ctx, s, "set on condition", func(again bool) (bool, error) {
		answer, err := s.script(ctx, s.key(key), head, value, life, again)
		switch {
		case err != nil:
			return false, err
		case answer == swapUnknown:
			return false, errOutcomeUnknown
		default:
			return answer == swapStored, nil
		}
	})
}

func (s *Store) script(ctx context.Context, key string, args ...any) (int, error) {
	run := func(command, script string) (int, error) {
		cmd := once{redis.NewCmd(ctx, append([]any{command, script, 1, key}, args...)...)}
		cmd.SetFirstKeyPos(3)
		_ = s.client.Process(ctx, cmd)
		return cmd.Int()
	}
	answer, err := run("evalsha", setIfSHA)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		answer, err = run("eval", setIfScript)
	}
	if err != nil {
		return 0, fmt.Errorf("script: %w", err)
	}
	return answer, nil
}
