package policy_test

import (
	"testing"
	"time"

	"github.com/terracecache/terrace/policy"
)

func TestDecisions(t *testing.T) {
	for _, c := range []struct {
		s                  policy.Strategy
		freshFor, staleFor time.Duration
		want               policy.Decision
	}{
		{policy.Fixed{}, 1, 1, policy.Serve},
		{policy.Fixed{}, policy.Forever, policy.Forever, policy.Serve},
		{policy.Fixed{}, 0, 5, policy.Load},
		{policy.Fixed{}, -1, 5, policy.Load},
		{policy.StaleWhileRevalidate{}, 1, 6, policy.Serve},
		{policy.StaleWhileRevalidate{}, 0, 5, policy.Refresh},
		{policy.StaleWhileRevalidate{}, -4, 1, policy.Refresh},
		{policy.StaleWhileRevalidate{}, -5, 0, policy.Load},
		{policy.StaleWhileRevalidate{}, -6, -1, policy.Load},
		{policy.XFetch{}, 0, 5, policy.Refresh},
		{policy.XFetch{}, 0, 0, policy.Load},
		{policy.XFetch{}, time.Hour, time.Hour, policy.Serve},
	} {
		if got := c.s.Decide(policy.Reading{FreshFor: c.freshFor, StaleFor: c.staleFor}); got != c.want {
			t.Errorf("%s, fresh for %v, stale for %v: %v, want %v", policy.NameOf(c.s), c.freshFor, c.staleFor, got, c.want)
		}
	}
}

type custom struct{ policy.Fixed }

func (custom) Name() string { return "mine" }

type nameless struct{}

func (nameless) Decide(policy.Reading) policy.Decision { return policy.Load }

func TestNames(t *testing.T) {
	for want, s := range map[string]policy.Strategy{
		"fixed": policy.Fixed{}, "swr": policy.StaleWhileRevalidate{}, "xfetch": policy.XFetch{}, "mine": custom{}, "custom": nameless{},
	} {
		if got := policy.NameOf(s); got != want {
			t.Errorf("NameOf(%T) = %q, want %q", s, got, want)
		}
	}
	for want, d := range map[string]policy.Decision{"serve": policy.Serve, "refresh": policy.Refresh, "load": policy.Load, "unknown": 9} {
		if got := d.String(); got != want {
			t.Errorf("Decision(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestStaleWhileRevalidateNeedsAWindow(t *testing.T) {
	s := policy.StaleWhileRevalidate{}
	if err := s.Validate(policy.Lifetime{TTL: 1}); err == nil {
		t.Error("without a window: no error")
	}
	if err := s.Validate(policy.Lifetime{TTL: 1, StaleWhileRevalidate: 1}); err != nil {
		t.Errorf("with a window: %v", err)
	}
}

// A strategy is called at each hit.
func TestDecideDoesNotAllocate(t *testing.T) {
	for _, s := range []policy.Strategy{policy.Fixed{}, policy.StaleWhileRevalidate{}, policy.XFetch{}} {
		if n := testing.AllocsPerRun(100, func() {
			s.Decide(policy.Reading{FreshFor: time.Second, StaleFor: time.Second, LoadTime: time.Second})
		}); n != 0 {
			t.Errorf("%s: Decide allocates %v times", policy.NameOf(s), n)
		}
	}
}
