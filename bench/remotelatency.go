package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/terracecache/terrace/tier"
)

// remoteTier is what is known of the remote tier. Nil: there is none.
type remoteTier struct {
	Label    string    `json:"label"`
	Measured bool      `json:"measured"`
	Gets     int       `json:"gets"` // that were measured
	P50      float64   `json:"p50"`  // seconds
	P99      float64   `json:"p99"`
	Mean     float64   `json:"mean"`
	samples  []float64 // seconds, sorted
	url      string    // for the document, without secrets
}

const (
	// measuredKeys are written, and got again and again.
	measuredKeys = 64
	// mostGets and measuredFor end a measurement, whichever comes first.
	mostGets    = 5000
	measuredFor = 2 * time.Second
)

// measureRemote returns what the settings say of the remote tier, or what its server
// says.
func (s *adviseSettings) measureRemote(ctx context.Context) (*remoteTier, error) {
	if !s.hasRemote() {
		return nil, nil
	}
	t := &remoteTier{Label: "given", url: "redis://localhost:6379"}
	if s.Redis != "" {
		r, err := redisRemote(s.Redis)
		if err != nil {
			return nil, fmt.Errorf("--redis: %w", err)
		}
		if err := r.answers(ctx); err != nil {
			return nil, fmt.Errorf("--redis: %w", err)
		}
		t.Label, t.url = r.label, bareURL(s.Redis)
		if s.RemoteLatency == 0 {
			if err := t.measure(ctx, r, int(min(max(s.entry, 1024), 1<<20))); err != nil {
				return nil, failure{fmt.Errorf("--redis: %w", err)}
			}
			return t, nil
		}
	}
	t.take([]float64{s.RemoteLatency.Seconds()})
	return t, nil
}

// measure times Gets one after another, of values of the size.
func (t *remoteTier) measure(ctx context.Context, r *remote, size int) error {
	prefix := newPrefix()
	b, err := r.open(prefix)
	if err != nil {
		return err
	}
	defer b.Close()
	keys := make([]string, measuredKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%d", i)
	}
	defer func() { _ = r.clear(ctx, prefix, keys) }() // they end by themselves in a minute
	for _, key := range keys {
		if err := b.Set(ctx, key, make([]byte, size), time.Minute); err != nil {
			return err
		}
	}
	var samples []float64
	for end := tier.Now().Add(measuredFor); len(samples) < mostGets; {
		began := tier.Now()
		if began >= end {
			break
		}
		if _, err := b.Get(ctx, keys[len(samples)%len(keys)]); err != nil {
			return err
		}
		samples = append(samples, tier.Now().Sub(began).Seconds())
	}
	t.Measured, t.Gets = true, len(samples)
	t.take(samples)
	return nil
}

// take takes over how long Gets take.
func (t *remoteTier) take(samples []float64) {
	slices.Sort(samples)
	t.samples = samples
	for _, v := range samples {
		t.Mean += v / float64(len(samples))
	}
	t.P50, t.P99 = samples[len(samples)/2], samples[len(samples)*99/100]
}
