package policy_test

import (
	"math"
	"testing"
	"time"

	"github.com/terracecache/terrace/policy"
)

func TestBackoffGrows(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		b    policy.Backoff
		want []time.Duration // the upper ends, after 1, 2, ... failures
	}{
		{policy.Backoff{}, []time.Duration{250 * ms, 500 * ms, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second}},
		{policy.Backoff{Initial: time.Second, Max: 3 * time.Second}, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second}},
		{policy.Backoff{Initial: time.Minute}, []time.Duration{time.Minute, time.Minute}},
		{policy.Backoff{Initial: math.MaxInt64/2 + 2, Max: math.MaxInt64}, []time.Duration{math.MaxInt64/2 + 2, math.MaxInt64, math.MaxInt64}},
	} {
		for i, want := range c.want {
			least, most := c.b.Wait(i+1, 0), c.b.Wait(i+1, latest)
			if least != want/2 {
				t.Errorf("%+v: least wait after %d failures %v, want %v", c.b, i+1, least, want/2)
			}
			if most > want || most < want-want/1000-1 {
				t.Errorf("%+v: longest wait after %d failures %v, want nearly %v", c.b, i+1, most, want)
			}
		}
	}
}

func TestBackoffOfOddCounts(t *testing.T) {
	for _, failures := range []int{math.MinInt, -1, 0, 1} {
		if got := (policy.Backoff{}).Wait(failures, 0); got != 125*time.Millisecond {
			t.Errorf("after %d failures: %v, want the first wait", failures, got)
		}
	}
	start := time.Now()
	if got := (policy.Backoff{Initial: 1, Max: math.MaxInt64}).Wait(math.MaxInt, 0); got != math.MaxInt64/2 {
		t.Errorf("after endless failures: %v", got)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("it took %v to tell", took)
	}
}

func TestBackoffValidate(t *testing.T) {
	for b, want := range map[policy.Backoff]bool{
		{}: true, {Initial: time.Hour}: true, {Initial: 1, Max: 1}: true, {Max: time.Second}: true,
		{Initial: -1}: false, {Max: -1}: false, {Initial: 2, Max: 1}: false, {Max: time.Millisecond}: false,
	} {
		if err := b.Validate(); (err == nil) != want {
			t.Errorf("%+v: got error %v, want valid: %v", b, err, want)
		}
	}
}
