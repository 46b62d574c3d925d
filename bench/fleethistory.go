package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/terracecache/terrace/bench/internal/history"
)

// What the processes of a recorded history are given, so that what follows a fault can be
// awaited many times within seconds.
var historyTimes = cacheTimes{
	Timeout:   100 * time.Millisecond,
	Probe:     200 * time.Millisecond,
	Retry:     50 * time.Millisecond,
	Heartbeat: 200 * time.Millisecond,
	Ping:      100 * time.Millisecond,
	Clamp:     300 * time.Millisecond,
}

const (
	historyKeys    = 16 // few, so that operations meet
	historyCallers = 8
	// historyRate is how many operations a second all processes make together.
	historyRate = 2000
	// historyLoad is how long the origin takes at most.
	historyLoad = 10 * time.Millisecond
	// lastReconnect is the longest wait of the bus between two tries to connect.
	lastReconnect = 2 * time.Second
	// redial is how often go-redis tries to connect once as many dials have failed as its
	// pool has room for; calls fail at once until then.
	redial = time.Second
	// mostViolations are told of a row.
	mostViolations = 10
)

// keepUntil is the life of an entry in memory with the bus: nothing else is to end it.
const keepUntil = fleetTTL

func (f *fleet) promise() history.Promise {
	const noise = 100 * time.Millisecond
	t := historyTimes
	p := history.Promise{
		Bus:      f.row.Bus,
		Converge: f.settings.Converge,
		Clamp:    t.Clamp + t.Heartbeat/2 + noise/2,
		Notice:   2 * time.Millisecond,
		Storing:  2*t.Timeout + noise/2,
	}
	if !f.row.Bus {
		p.Keep = f.settings.L1TTL + historyLoad + 2*t.Timeout + noise
	}
	return p
}

// history: all processes read, set, delete and expire few keys at random, while what lies
// between each of them and the server fails at random; what they saw is checked.
func (f *fleet) history(ctx context.Context) error {
	pause := time.Second * time.Duration(f.settings.Processes*f.row.Callers) / historyRate
	_, err := each(f.members, func(m *member) (none, error) {
		return none{}, m.ask(ctx, "play", playOrder{Callers: f.row.Callers, Pause: pause, Seed: f.settings.Seed}, nil)
	})
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var here, server stalls
	var watchers sync.WaitGroup
	watchers.Go(func() { here.watch(watching, func() {}) })
	probe, err := f.server.open(f.prefix)
	if err != nil {
		return err
	}
	defer probe.Close()
	watchers.Go(func() { server.watch(watching, func() { _, _ = probe.Get(watching, "probe") }) })

	h := &history.History{Processes: make([]history.Process, len(f.members))}
	faults, end := context.WithCancel(ctx)
	defer end()
	troubles, troubling := make([]trouble, len(f.members)), sync.WaitGroup{}
	for i := range f.members {
		t := &troubles[i]
		*t = trouble{tier: f.forwarders[i], bus: f.busForwarders[i], rng: rand.New(rand.NewPCG(f.settings.Seed, uint64(i)))}
		troubling.Go(func() { t.make(faults) })
	}
	failed := ""
	collect := func(last bool) error {
		all, err := asks[recorded](ctx, f.members, "collect", collectOrder{Last: last})
		for i, r := range all {
			h.Ops = append(h.Ops, r.Ops...)
			p := &h.Processes[i]
			p.Samples, p.Stalls = append(p.Samples, r.Samples...), append(p.Stalls, r.Stalls...)
			if r.Error != "" && failed == "" {
				failed = fmt.Sprintf("process %d: %s", i+1, r.Error)
			}
		}
		return err
	}
	for h.Operations() < f.settings.Operations && err == nil {
		if err = sleep(ctx, 100*time.Millisecond); err == nil {
			err = collect(false)
		}
	}
	end()
	troubling.Wait()
	// All is well again, and then they go on for longer than anything old may be read.
	back := fleetNow()
	for i, t := range troubles {
		if t.err != nil {
			return t.err
		}
		h.Processes[i].TierDown, h.Processes[i].BusDown = t.tierDown, t.busDown
		for _, down := range slices.Concat(t.tierDown, t.busDown) {
			back = max(back, down.End)
		}
	}
	p := f.promise()
	if err == nil {
		err = sleep(ctx, time.Duration(back-fleetNow())+max(p.Keep, p.Clamp)+quiet)
	}
	if err == nil {
		err = collect(true)
	}
	stop()
	watchers.Wait()
	if err != nil {
		return err
	}
	h.Stalls = slices.Concat(here.take(), server.take())
	f.tell(h, p, troubles, failed)
	return f.save(h)
}

// save adds the history to the file that the settings name, if they do.
func (f *fleet) save(h *history.History) error {
	if f.settings.histories == nil {
		return nil
	}
	text, err := json.Marshal(struct {
		Row     fleetRow         `json:"row"`
		History *history.History `json:"history"`
	}{f.row, h})
	if err != nil {
		return err
	}
	return f.settings.histories.add(text)
}

// tell puts what the history shows into the row.
func (f *fleet) tell(h *history.History, p history.Promise, troubles []trouble, failed string) {
	r := h.Check(p)
	operations, violations := r.Reads+r.Writes+r.Failed, len(r.Violations)
	f.row.Operations, f.row.Violations = &operations, &violations
	f.row.Failed += r.Failed
	f.row.StaleReads = len(r.Stale)
	for _, op := range h.Ops {
		if op.Kind == history.Get {
			f.row.LongestWait = max(f.row.LongestWait, time.Duration(op.End-op.Begin).Seconds())
		}
	}
	if failed != "" {
		f.note("%s: a call failed: %s", f.row.label(), oneLine(failed))
	}
	for i, v := range r.Violations {
		if i == mostViolations {
			f.note("%s: and %d violations more", f.row.label(), len(r.Violations)-i)
			break
		}
		f.note("%s: VIOLATION: %v", f.row.label(), v)
	}
	of := func(share float64) time.Duration {
		if len(r.Stale) == 0 {
			return 0
		}
		return r.Stale[int(share*float64(len(r.Stale)-1))].Round(100 * time.Microsecond)
	}
	if len(r.Stale) > 0 {
		f.row.Converge = r.Stale[len(r.Stale)-1].Seconds()
	}
	faults := 0
	for _, t := range troubles {
		faults += len(t.tierDown) + len(t.busDown)
	}
	f.note("%s: %d reads, %d writes, %d faults of connections; of the stale reads half began within %v, 99%% within %v, all within %v; %d Expires excused",
		f.row.label(), r.Reads, r.Writes, faults, of(.5), of(.99), of(1), r.Excused)
}

// trouble has a process's connections fail at random, and notes when.
type trouble struct {
	tier, bus *forwarder // bus is nil where there is none
	rng       *rand.Rand

	tierDown, busDown []history.Span // with the time to recover
	err               error
}

func (t *trouble) make(ctx context.Context) {
	for t.err == nil && sleep(ctx, 300*time.Millisecond+t.upTo(2500*time.Millisecond)) == nil {
		which := t.rng.IntN(3)
		kind := t.rng.IntN(4)
		lasts, delay := 50*time.Millisecond+t.upTo(900*time.Millisecond), 5*time.Millisecond+t.upTo(150*time.Millisecond)
		began := fleetNow()
		for i, link := range []*forwarder{t.tier, t.bus} {
			if link == nil || t.bus != nil && which == i {
				continue // one of them, or both
			}
			switch kind {
			case 0:
				link.cut()
			case 1:
				link.reset()
			case 2:
				t.err = firstError(t.err, link.blackHole())
			case 3:
				t.err = firstError(t.err, link.delay(delay))
			}
		}
		_ = sleep(ctx, lasts) // if that ends, all is restored at once
		for i, link := range []*forwarder{t.tier, t.bus} {
			if link == nil || t.bus != nil && which == i {
				continue
			}
			t.err = firstError(t.err, link.restore())
			now, c := fleetNow(), historyTimes
			lasted := time.Duration(now - began)
			if link == t.tier {
				back := c.Probe + c.Timeout + 100*time.Millisecond
				t.tierDown = append(t.tierDown, history.Span{Begin: began, End: now + int64(back)})
			} else {
				// It waits for no longer between two tries than it has been lost by then.
				// Then what waits to be published may have to wait for the pool.
				back := min(lasted, lastReconnect) + redial + c.Timeout + c.Heartbeat + 100*time.Millisecond
				t.busDown = append(t.busDown, history.Span{Begin: began, End: now + int64(back)})
			}
		}
	}
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (t *trouble) upTo(d time.Duration) time.Duration { return time.Duration(t.rng.Int64N(int64(d))) }

// turn is the right to write a key: alone, or beside others.
type turn struct {
	mu      sync.Mutex
	alone   bool
	beside  int
	changed chan struct{} // closed at the next change; nil where nobody waits
}

func (t *turn) take(ctx context.Context, alone bool) error {
	for {
		t.mu.Lock()
		if !t.alone && (!alone || t.beside == 0) {
			if t.alone = alone; !alone {
				t.beside++
			}
			t.mu.Unlock()
			return nil
		}
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *turn) give(alone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if alone {
		t.alone = false
	} else {
		t.beside--
	}
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// takeTurn gives the key a new version when its turn has come.
func (f *fleet) takeTurn(ctx context.Context, o turnOrder) (keyValue, error) {
	if o.Key < 0 || o.Key >= len(f.turns) {
		return keyValue{}, fmt.Errorf("no such key: %d", o.Key)
	}
	if err := f.turns[o.Key].take(ctx, o.Alone); err != nil {
		return keyValue{}, err
	}
	return f.origin.change(o.Key), nil
}

func (f *fleet) giveTurn(_ context.Context, o turnOrder) (none, error) {
	if o.Key < 0 || o.Key >= len(f.turns) {
		return none{}, fmt.Errorf("no such key: %d", o.Key)
	}
	f.turns[o.Key].give(o.Alone)
	return none{}, nil
}
