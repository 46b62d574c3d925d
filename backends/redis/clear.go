package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// scanCount is how many keys the server looks at for each page of a scan.
const scanCount = 1000

// Clear implements [tier.Clearer]: it scans for the keys that begin with the prefix,
// on a Cluster over all masters, and unlinks them. It walks the whole database, other
// applications' keys included, page by page, so give it time. Without a prefix it
// answers errors.ErrUnsupported.
//
// While a Cluster moves slots from one node to another, keys may escape it.
func (s *Store) Clear(ctx context.Context) error {
	return do(ctx, s, "clear", func() error {
		if s.options.Prefix == "" {
			return fmt.Errorf("%w: without Options.Prefix the store's keys cannot be told from others", errors.ErrUnsupported)
		}
		return s.eachMaster(ctx, s.clearNode)
	})
}

func (s *Store) eachMaster(ctx context.Context, f func(ctx context.Context, node redis.Cmdable) error) error {
	each := func(ctx context.Context, node *redis.Client) error { return f(ctx, node) }
	switch c := s.client.(type) {
	case interface {
		ForEachMaster(context.Context, func(context.Context, *redis.Client) error) error
	}:
		return c.ForEachMaster(ctx, each)
	case interface {
		ForEachShard(context.Context, func(context.Context, *redis.Client) error) error
	}:
		return c.ForEachShard(ctx, each)
	default:
		return f(ctx, s.client)
	}
}

func (s *Store) clearNode(ctx context.Context, node redis.Cmdable) error {
	pattern := globQuote(s.options.Prefix) + "*"
	for cursor := uint64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		keys, next, err := node.Scan(ctx, cursor, pattern, scanCount).Result()
		if err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		// Through the client and not the node: keys may have moved since the scan.
		if err := s.pipelineRemove(ctx, keys, redis.Pipeliner.Unlink); err != nil {
			return fmt.Errorf("unlink: %w", err)
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

var globQuoter = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `\`, `\\`)

// globQuote makes a pattern that matches the text itself.
func globQuote(text string) string { return globQuoter.Replace(text) }
