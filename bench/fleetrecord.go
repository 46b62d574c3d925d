package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/terracecache/terrace/bench/internal/history"
	"github.com/terracecache/terrace/coordinator"
)

// recording is callers who read and write keys at random, with all that they do.
type recording struct {
	stop   context.CancelFunc
	ended  sync.WaitGroup
	stalls stalls

	mu sync.Mutex
	recorded
}

// recorded is what has happened in a process since it was last asked.
type recorded struct {
	Ops     []history.Op     `json:"ops"`
	Samples []history.Sample `json:"samples"`
	Stalls  []history.Span   `json:"stalls"`
	Error   string           `json:"error,omitempty"` // of the first call that failed
}

// playOrder begins a recording.
type playOrder struct {
	Callers int           `json:"callers"`
	Pause   time.Duration `json:"pause"` // of a caller between two operations, on average
	Seed    uint64        `json:"seed"`
}

// turnOrder asks for a turn to write a key, or gives it back.
type turnOrder struct {
	Key   int  `json:"key"`
	Alone bool `json:"alone"` // with no other write of the key at the same time
}

const (
	// One operation in so many is a write.
	writeShare = 20
	// hotKeys are the first ones, which half of the writes are for.
	hotKeys = 2
	// sampleEvery is how often the cache is asked for its state.
	sampleEvery = 5 * time.Millisecond
)

func (p *process) play(_ context.Context, o playOrder) (none, error) {
	r := new(recording)
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	p.recording.Store(r)
	r.ended.Go(func() { r.stalls.watch(ctx, func() {}) })
	r.ended.Go(func() { p.sample(ctx, r) })
	for i := range o.Callers {
		rng := rand.New(rand.NewPCG(o.Seed, uint64(p.number)<<32+uint64(i)))
		r.ended.Go(func() {
			for sleep(ctx, time.Duration(rng.Int64N(2*int64(o.Pause)))) == nil {
				op := history.Op{Process: p.number, Kind: history.Get, Key: rng.IntN(p.keys)}
				if rng.IntN(writeShare) == 0 {
					op.Kind = []history.Kind{history.Set, history.Set, history.Delete, history.Delete, history.Expire}[rng.IntN(5)]
					if rng.IntN(2) == 0 {
						op.Key = rng.IntN(min(hotKeys, p.keys))
					}
				}
				r.note(op, p.perform(&op))
			}
		})
	}
	return none{}, nil
}

// perform does an operation, and completes it by what came of it. The error is of one that
// came to nothing.
func (p *process) perform(op *history.Op) (err error) {
	ctx := context.Background()
	op.Begin = fleetNow()
	if op.Kind == history.Get {
		op.Version, err = p.read(ctx, op.Key)
		op.End = fleetNow()
		return err
	}
	turn := turnOrder{Key: op.Key, Alone: op.Kind == history.Set}
	var v keyValue
	if err := p.parent.call(ctx, "turn", turn, &v); err != nil {
		return err
	}
	op.Version = v.Version
	switch key := fleetKey(op.Key); op.Kind {
	case history.Set:
		err = p.cache.Set(ctx, key, v)
	case history.Delete:
		err = p.cache.Delete(ctx, key)
	default:
		err = p.cache.Expire(ctx, key)
	}
	op.End = fleetNow()
	if missed := (*coordinator.WriteError)(nil); errors.As(err, &missed) {
		op.Missed, err = true, nil
	}
	return errors.Join(err, p.parent.call(ctx, "turned", turn, nil))
}

// loaded notes a load, if there is a recording.
func (p *process) loaded(key int, began int64, v keyValue, err error) {
	if r := p.recording.Load(); r != nil && err == nil {
		r.note(history.Op{Process: p.number, Key: key, Kind: history.Load, Version: v.Version, Begin: began, End: fleetNow()}, nil)
	}
}

func (r *recording) note(op history.Op, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		op.Failed = true
		if r.Error == "" {
			r.Error = string(op.Kind) + ": " + err.Error()
		}
	}
	r.Ops = append(r.Ops, op)
}

// sample notes what the cache says of itself, over and over.
func (p *process) sample(ctx context.Context, r *recording) {
	for sleep(ctx, sampleEvery) == nil {
		s := history.Sample{Begin: fleetNow()}
		stats := p.cache.Stats()
		for _, t := range stats.Tiers {
			s.Pending += t.Pending
		}
		s.Lost, s.Gaps = !stats.Bus.Connected, stats.Bus.Gaps
		s.End = fleetNow()
		r.mu.Lock()
		r.Samples = append(r.Samples, s)
		r.mu.Unlock()
	}
}

// collectOrder asks for what was recorded.
type collectOrder struct {
	Last bool `json:"last"` // and ends the recording before
}

func (p *process) collect(_ context.Context, o collectOrder) (recorded, error) {
	r := p.recording.Load()
	if r == nil {
		return recorded{}, errors.New("no recording")
	}
	if o.Last {
		r.stop()
		r.ended.Wait()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.recorded
	got.Stalls = r.stalls.take()
	r.recorded = recorded{}
	return got, nil
}
