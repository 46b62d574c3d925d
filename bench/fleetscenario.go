package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// scenario is something that a fleet goes through.
type scenario struct {
	name string
	run  func(f *fleet, ctx context.Context) error
	cuts bool // connections
	// At most so many, whatever the settings say; 0 for as many as they say.
	keys, callers int
}

var fleetScenarios = []scenario{
	{name: "cold", run: (*fleet).cold},
	{name: "invalidate", run: (*fleet).invalidate},
	{name: "cut", run: (*fleet).cut, cuts: true},
	{name: "kill", run: (*fleet).kill},
	{name: "history", run: (*fleet).history, cuts: true, keys: historyKeys, callers: historyCallers},
}

func scenarioNames() []string {
	names := make([]string, len(fleetScenarios))
	for i, sc := range fleetScenarios {
		names[i] = sc.name
	}
	return names
}

// fleet is the run of one row.
type fleet struct {
	settings *fleetSettings
	server   *fleetServer
	row      fleetRow
	note     func(format string, args ...any)

	prefix  string
	origin  *fleetOrigin
	members []*member
	missed  int    // writes that told that a tier has missed them
	turns   []turn // by key

	// What each process goes through to the server, and to its bus; nil where it goes
	// there straight.
	forwarders, busForwarders []*forwarder
}

// rowWithin bounds a row beside what its settings make it wait for.
const rowWithin = time.Minute

// run runs the row's scenario with processes of its own, and removes what they have left.
func (f *fleet) run(ctx context.Context) (err error) {
	s := f.settings
	within := rowWithin + 4*(s.OriginLatency+s.LeaseLife+s.L1TTL) + 4*time.Second*time.Duration(s.Operations)/historyRate
	ctx, cancel := context.WithTimeoutCause(ctx, within, errors.New("the fleet does not get on"))
	defer cancel()
	f.prefix = newPrefix()
	latency := s.OriginLatency
	if f.row.Scenario == "history" {
		latency = min(latency, historyLoad)
	}
	f.origin = newFleetOrigin(f.row.Keys, s.Processes, latency)
	f.turns = make([]turn, f.row.Keys)
	f.forwarders, f.busForwarders = make([]*forwarder, s.Processes), make([]*forwarder, s.Processes)
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		f.endAll()
		if cleared := f.server.clear(ctx, f.prefix, keyNames(f.row.Keys)); err == nil && cleared != nil {
			if err = f.server.answers(ctx); err == nil {
				err = fmt.Errorf("remove the keys: %w", cleared)
			}
		}
	}()
	for number := range s.Processes {
		m, err := startMember(number, map[string]handler{
			"load":   handle(func(ctx context.Context, o loadOrder) (keyValue, error) { return f.origin.load(ctx, number, o.Key) }),
			"turn":   handle(f.takeTurn),
			"turned": handle(f.giveTurn),
		})
		if err != nil {
			return err
		}
		f.members = append(f.members, m)
		context.AfterFunc(ctx, m.killSoon) // it may not even read what it is told
	}
	for i, m := range f.members {
		order, err := f.order(i)
		if err != nil {
			return err
		}
		if err := m.ask(ctx, "open", order, nil); err != nil {
			return err
		}
	}
	for _, sc := range fleetScenarios {
		if sc.name == f.row.Scenario {
			if err := sc.run(f, ctx); err != nil {
				return err
			}
		}
	}
	f.row.OriginCalls = f.origin.count()
	return nil
}

// order is what a process is told to make.
func (f *fleet) order(number int) (o cacheOrder, err error) {
	s := f.settings
	o = f.server.order()
	o.Number, o.Prefix, o.L1TTL, o.Keys, o.Bus = number, f.prefix, s.L1TTL, f.row.Keys, f.row.Bus
	if f.row.Lease {
		o.LeaseLife = s.LeaseLife
	}
	history := f.row.Scenario == "history"
	if !history && (f.row.Scenario != "cut" || number < s.Processes-1) {
		return o, nil
	}
	addresses, err := f.server.addresses()
	if err != nil {
		return o, err
	}
	if history {
		o.Times = historyTimes
		if o.Bus {
			o.L1TTL = keepUntil
			if f.busForwarders[number], err = newForwarder(addresses); err != nil {
				return o, err
			}
			o.BusRedis = redisThrough(o.Redis, f.busForwarders[number])
		}
	}
	if f.forwarders[number], err = newForwarder(addresses); err != nil {
		return o, err
	}
	return o.through(f.forwarders[number]), nil
}

// endAll ends the processes, and what they have gone through.
func (f *fleet) endAll() {
	var ending sync.WaitGroup
	for _, m := range f.members {
		ending.Go(m.end)
	}
	ending.Wait()
	for _, through := range slices.Concat(f.forwarders, f.busForwarders) {
		through.close()
	}
}

// each calls the members at the same time, and returns when all have answered.
func each[T any](members []*member, call func(m *member) (T, error)) ([]T, error) {
	answers, errs := make([]T, len(members)), make([]error, len(members))
	var calling sync.WaitGroup
	for i, m := range members {
		calling.Go(func() { answers[i], errs[i] = call(m) })
	}
	calling.Wait()
	return answers, errors.Join(errs...)
}

func asks[T any](ctx context.Context, members []*member, name string, body any) ([]T, error) {
	return each(members, func(m *member) (answer T, err error) {
		err = m.ask(ctx, name, body, &answer)
		return answer, err
	})
}

func (f *fleet) addTally(t tallied) {
	f.row.Failed += t.Failed
	f.row.LongestWait = max(f.row.LongestWait, t.Longest.Seconds())
	if t.Error != "" {
		f.note("%s: a call failed: %s", f.row.label(), oneLine(t.Error))
	}
}

// finish waits for the callers of a burst.
func (f *fleet) finish(ctx context.Context, members []*member) error {
	tallies, err := asks[tallied](ctx, members, "finish", none{})
	if err != nil {
		return err
	}
	for _, t := range tallies {
		f.addTally(t)
	}
	return nil
}

// cold: all callers of all processes ask for all keys at once.
func (f *fleet) cold(ctx context.Context) error {
	if _, err := asks[none](ctx, f.members, "prepare", burstOrder{Callers: f.settings.Callers}); err != nil {
		return err
	}
	if _, err := asks[none](ctx, f.members, "begin", none{}); err != nil {
		return err
	}
	return f.finish(ctx, f.members)
}

// kill: the first process has begun to load all keys, and the callers of the others wait
// for them, when it is killed. The origin keeps its answers from it, so that none of its
// loads is over.
func (f *fleet) kill(ctx context.Context) error {
	victim, others := f.members[0], f.members[1:]
	if _, err := asks[none](ctx, f.members, "prepare", burstOrder{Callers: f.settings.Callers}); err != nil {
		return err
	}
	f.origin.withhold(victim.number)
	if err := victim.ask(ctx, "begin", none{}, nil); err != nil {
		return err
	}
	if err := f.origin.awaitCalls(ctx, victim.number, f.settings.Keys); err != nil {
		return err
	}
	if _, err := asks[none](ctx, others, "begin", none{}); err != nil {
		return err
	}
	victim.kill()
	return f.finish(ctx, others)
}

// warm has each process read all keys, one process after the other, and begins a new
// count of the origin's calls.
func (f *fleet) warm(ctx context.Context) error {
	for i := range f.members {
		one := f.members[i : i+1]
		if _, err := asks[none](ctx, one, "prepare", burstOrder{Callers: 1}); err != nil {
			return err
		}
		if _, err := asks[none](ctx, one, "begin", none{}); err != nil {
			return err
		}
		tallies, err := asks[tallied](ctx, one, "finish", none{})
		if err != nil {
			return err
		}
		if t := tallies[0]; t.Failed > 0 {
			return fmt.Errorf("process %d: read all keys: %s", i+1, t.Error)
		}
	}
	f.origin.mark()
	return nil
}

const (
	// quiet is how long the callers read before anything happens to them, and after it
	// is over, so that what comes back is seen.
	quiet = 200 * time.Millisecond
	// convergeWithin is how long is waited for all to read what was written, beside what
	// the settings make it take.
	convergeWithin = 5 * time.Second
)

// watch begins to read in all processes.
func (f *fleet) watch(ctx context.Context) error {
	_, err := each(f.members, func(m *member) (none, error) {
		return none{}, m.ask(ctx, "watch", watchOrder{Callers: f.settings.Callers, Seed: f.settings.Seed + uint64(m.number)}, nil)
	})
	if err != nil {
		return err
	}
	return sleep(ctx, quiet)
}

// invalidate: the first process sets and deletes keys in turn, while all read.
func (f *fleet) invalidate(ctx context.Context) error {
	if err := f.warm(ctx); err != nil {
		return err
	}
	if err := f.watch(ctx); err != nil {
		return err
	}
	var all []written
	for key := range f.settings.Keys {
		w, err := f.write(ctx, f.members[0], key, key%2 == 1)
		if err != nil {
			return err
		}
		all = append(all, w)
	}
	return f.converge(ctx, all, 0)
}

// cut: the last process is cut off; it and the first set and delete keys in turn; then the
// connection is restored.
func (f *fleet) cut(ctx context.Context) error {
	if err := f.warm(ctx); err != nil {
		return err
	}
	if err := f.watch(ctx); err != nil {
		return err
	}
	through := f.forwarders[len(f.forwarders)-1]
	through.cut()
	whole := f.settings.L1TTL / 2
	over := time.Now().Add(whole)
	if err := sleep(ctx, whole/2); err != nil {
		return err
	}
	var all []written
	for key := range f.settings.Keys {
		by := f.members[0]
		if key%2 == 1 {
			by = f.members[len(f.members)-1]
		}
		w, err := f.write(ctx, by, key, key/2%2 == 1)
		if err != nil {
			return err
		}
		all = append(all, w)
	}
	if err := sleep(ctx, time.Until(over)); err != nil {
		return err
	}
	if err := through.restore(); err != nil {
		return err
	}
	return f.converge(ctx, all, time.Now().UnixNano())
}

// write gives the key a new version, in the origin and then in the process's cache.
func (f *fleet) write(ctx context.Context, m *member, key int, remove bool) (written, error) {
	w := written{keyValue: f.origin.change(key)}
	var answer wrote
	if err := m.ask(ctx, "write", writeOrder{keyValue: w.keyValue, Delete: remove}, &answer); err != nil {
		return w, err
	}
	w.Returned = answer.Returned
	if answer.Error != "" {
		f.row.Failed++
		f.note("%s: a write failed: %s", f.row.label(), oneLine(answer.Error))
	}
	if answer.Missed {
		f.missed++
	}
	return w, nil
}

// converge waits until all processes have read what was written, ends the watch, and
// counts the stale reads: those that began after a write had returned. The last of them
// tells how long the fleet took, from the time since (wall clock), or where that is 0 from
// each write's return.
func (f *fleet) converge(ctx context.Context, all []written, since int64) error {
	s := f.settings
	began := time.Now()
	limit := convergeWithin + s.L1TTL + s.LeaseLife + 2*s.OriginLatency
	within, cancel := context.WithTimeout(ctx, limit)
	_, err := asks[none](within, f.members, "await", all)
	cancel()
	never := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	if err != nil && !never {
		return err
	}
	waited := time.Since(began)
	if err := sleep(ctx, quiet); err != nil {
		return err
	}
	audits, err := asks[audited](ctx, f.members, "audit", auditOrder{Written: all, Since: since})
	if err != nil {
		return err
	}
	for _, a := range audits {
		f.addTally(a.tallied)
		f.row.StaleReads += a.Stale
		f.row.Converge = max(f.row.Converge, a.Last.Seconds())
	}
	if never {
		f.row.Converge = max(f.row.Converge, waited.Seconds())
		f.note("%s: some process did not read what was written within %v: the time to converge is longer than the figure", f.row.label(), limit)
	}
	if f.missed > 0 {
		f.note("%s: %d writes of %d told their caller that the server had missed them, and were tried again", f.row.label(), f.missed, len(all))
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fleetOrigin is what all processes load from: it counts each call when it comes, whatever
// becomes of the caller, and knows what each key's value is.
type fleetOrigin struct {
	latency time.Duration

	mu       sync.Mutex
	versions []int
	calls    int
	by       []int // calls, by process
	withheld int   // the process that gets no answers; -1 for none
}

func newFleetOrigin(keys, processes int, latency time.Duration) *fleetOrigin {
	return &fleetOrigin{latency: latency, versions: make([]int, keys), by: make([]int, processes), withheld: -1}
}

// load answers with what the key's value is when the call comes.
func (o *fleetOrigin) load(ctx context.Context, by, key int) (keyValue, error) {
	o.mu.Lock()
	if key < 0 || key >= len(o.versions) {
		o.mu.Unlock()
		return keyValue{}, fmt.Errorf("no such key: %d", key)
	}
	o.calls++
	o.by[by]++
	v := keyValue{Key: key, Version: o.versions[key]}
	withheld := o.withheld == by
	o.mu.Unlock()
	if withheld {
		<-ctx.Done()
		return v, ctx.Err()
	}
	return v, sleep(ctx, o.latency)
}

// change gives the key a new version.
func (o *fleetOrigin) change(key int) keyValue {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.versions[key]++
	return keyValue{Key: key, Version: o.versions[key]}
}

// withhold keeps answers from a process.
func (o *fleetOrigin) withhold(from int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.withheld = from
}

// mark begins a new count.
func (o *fleetOrigin) mark() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = 0
}

func (o *fleetOrigin) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls
}

// awaitCalls returns when the process has made as many calls.
func (o *fleetOrigin) awaitCalls(ctx context.Context, by, n int) error {
	for {
		o.mu.Lock()
		got := o.by[by]
		o.mu.Unlock()
		if got >= n {
			return nil
		}
		if err := sleep(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
}
