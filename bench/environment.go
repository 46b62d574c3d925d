package main

import (
	"context"
	"runtime"
	"time"

	"github.com/terracecache/terrace/tier"
)

// environment is what a row's figures depend on beside the row's own name. Times are
// in seconds.
type environment struct {
	Go       string   `json:"go"`
	System   string   `json:"system"`
	CPUs     int      `json:"cpus"`
	Began    string   `json:"began"`    // RFC 3339
	L3       []string `json:"l3"`       // each server used, without secrets
	Complete bool     `json:"complete"` // false: interrupted or failed, with the rows done by then
	Notes    []string `json:"notes"`    // what readers of a row must know beside it
	Pace     floor    `json:"pace_seconds"`
	Workload struct {
		Kind      string  `json:"kind"` // or "trace"
		Trace     string  `json:"trace,omitempty"`
		Malformed *int64  `json:"malformed,omitempty"` // lines or records of the trace, which are left out; nil: there is no trace
		Speed     float64 `json:"speed,omitempty"`     // of the trace's own times; then the rate is what that makes in the mean
		Burst     int     `json:"burst,omitempty"`
		Writes    float64 `json:"write_share"`
		Deletes   float64 `json:"delete_share"`
		Keys      int     `json:"keys"`
		Skew      float64 `json:"skew"`
		Seed      uint64  `json:"seed"`
		ValueSize int     `json:"value_bytes"`
		Rate      float64 `json:"rate_per_second"`
		Warmup    float64 `json:"warmup_seconds"`
		Open      float64 `json:"open_loop_seconds"`
		Closed    float64 `json:"closed_loop_seconds"`
		Workers   int     `json:"concurrency"`
	} `json:"workload"`
	Cache  *cacheSettings   `json:"cache,omitempty"`  // of combinations
	Config []documentOfRows `json:"config,omitempty"` // the documents whose caches the rows are
	Origin struct {
		Kind     string  `json:"kind"` // or "url"
		Does     string  `json:"does"` // for people; without secrets
		Latency  float64 `json:"latency_seconds"`
		Sigma    float64 `json:"sigma,omitempty"`
		Capacity int     `json:"capacity,omitempty"`
		Fails    float64 `json:"fails,omitempty"` // share of the open loop
	} `json:"origin"`
	Slow float64 `json:"slow_seconds"` // the threshold above which a read is slow
}

// cacheSettings are what all combinations are run with.
type cacheSettings struct {
	TTL       float64 `json:"ttl_seconds"`
	Stale     float64 `json:"swr_stale_seconds"`
	IfError   float64 `json:"stale_if_error_seconds"`
	Beta      float64 `json:"xfetch_beta"`
	L1Entries int     `json:"l1_entries"`
	L2Entries int     `json:"l2_entries"`
}

// documentOfRows is what a document says, without secrets.
type documentOfRows struct {
	File   string   `json:"file"`
	Caches []string `json:"caches"` // a line each
}

// floor is the latency of a read that does nothing: what the pace itself puts into
// each read's latency on this machine.
type floor struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

func newEnvironment(ctx context.Context, s *settings, remotes []*remote) environment {
	e := environment{
		Go:     runtime.Version(),
		System: runtime.GOOS + "/" + runtime.GOARCH,
		CPUs:   runtime.GOMAXPROCS(0),
		Began:  time.Now().Format(time.RFC3339),
		L3:     []string{},
		Notes:  []string{},
	}
	if s.Speed == 0 { // else it comes with the rate, from the trace
		e.Pace = measureFloor(ctx, s)
	}
	for _, r := range remotes {
		e.L3 = append(e.L3, r.label)
	}
	e.Workload.Keys, e.Workload.Skew, e.Workload.Seed = s.Keys, s.Skew, s.Seed
	e.Workload.ValueSize, e.Workload.Rate, e.Workload.Workers = s.ValueSize, s.Rate, s.Concurrency
	e.Workload.Warmup, e.Workload.Open, e.Workload.Closed = s.WarmupSeconds, s.Seconds, s.ClosedSeconds
	if len(s.Config) == 0 {
		e.Cache = &cacheSettings{
			TTL: s.TTL.Seconds(), Stale: s.Stale.Seconds(), IfError: s.StaleIfError.Seconds(), Beta: s.Beta,
			L1Entries: s.L1Entries, L2Entries: s.L2Entries,
		}
	}
	e.describeLoad(s)
	e.Origin.Latency, e.Slow = s.OriginLatency.Seconds(), s.Slow.Seconds()
	return e
}

// describeLoad says what the workload and the origin are.
func (e *environment) describeLoad(s *settings) {
	w, o := &e.Workload, &e.Origin
	w.Kind, w.Trace, w.Speed, w.Writes, w.Deletes = s.Workload, s.Trace, s.Speed, s.Writes, s.Deletes
	if s.Trace != "" {
		w.Kind = "trace"
	}
	if w.Kind == "burst" {
		w.Burst = s.Burst
	}
	o.Kind, o.Does = s.Origin, s.originLabel()
	switch s.Origin {
	case "fixed":
	case "log-normal":
		o.Sigma = s.OriginSigma
	case "limited":
		o.Capacity = s.OriginCapacity
	case "failing":
		o.Fails = s.OriginFails
	default:
		o.Kind = "url"
	}
}

// measureFloor runs the open loop at the rate with reads that do nothing.
func measureFloor(ctx context.Context, s *settings) floor {
	const long = 0.2 // seconds
	t := newTally(s.Slow)
	nap, release := newNap()
	defer release()
	openLoop(ctx, newPace(max(1, min(s.reads(long), s.reads(s.Seconds))), s.Rate, nap), s.Concurrency, func(_ int, due tier.Instant) {
		took := tier.Now().Sub(due)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.add(took, took, "", 0)
	})
	p := t.latency.percentiles()
	return floor{P50: p.P50, P99: p.P99}
}
