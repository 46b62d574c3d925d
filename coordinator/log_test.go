package coordinator_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/storetest"
)

// Keys are not logged, not by way of an error either.
func TestKeysAreNotLogged(t *testing.T) {
	var buf bytes.Buffer
	var c *coordinator.Cache[string, string]
	c = newCache(t, coordinator.Options[string, string]{
		Tiers:  []tier.Tier[string, string]{memory[string]("l1")},
		Logger: slog.New(slog.NewTextHandler(&buf, nil)),
		Load:   func(ctx context.Context, k string) (string, error) { return c.Get(ctx, k) },
	})
	_, _ = c.Get(ctx, "session-SECRET")
	if strings.Contains(buf.String(), "SECRET") {
		t.Errorf("log: %s", buf.String())
	}
}

// readingHandler uses the cache from within the handler of a line of its log.
type readingHandler struct {
	slog.Handler
	f func()
}

func (h readingHandler) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "too many failed") {
		h.f()
	}
	return nil
}

// The log handler is called without a lock of the cache.
func TestLogHandlerMayUseTheCache(t *testing.T) {
	fs := storetest.NewFaulty(storetest.NewMap[string, string]())
	fs.SetRemote()
	fs.Inject(storetest.Fail(errors.New("down")))
	var c *coordinator.Cache[string, string]
	blocked := make(chan bool, 10)
	c, _ = coordinator.New(coordinator.Options[string, string]{
		Tiers:    []tier.Tier[string, string]{memory[string]("l1"), {Name: "l2", Store: fs}},
		Lifetime: policy.Lifetime{TTL: time.Minute},
		Limits:   coordinator.Limits{Recovery: 1},
		Logger: slog.New(readingHandler{quiet.Handler(), func() {
			x, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			began := time.Now()
			_, err := c.Get(x, "unrelated")
			_ = err
			blocked <- time.Since(began) > 250*time.Millisecond
		}}),
	})
	_ = c.Set(ctx, "a", "1")
	_ = c.Set(ctx, "b", "1")
	if <-blocked {
		t.Errorf("a Get of an unrelated key hangs while the log handler runs")
	}
}
