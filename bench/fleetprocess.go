package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/terracecache/terrace/backends/lru"
	"github.com/terracecache/terrace/backends/memcached"
	"github.com/terracecache/terrace/backends/redis"
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

// What one process of a fleet does. It is told by calls on stdin, and asks the origin,
// which is where the fleet is run from, by calls on stdout.

// processName is the hidden command that is one process of a fleet.
const processName = "fleet-process"

// processCommand is one process of a fleet. It ends when its stdin does.
func processCommand(stdin io.Reader, stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:    processName,
		Hidden: true,
		Args:   noArguments,
		RunE: func(*cobra.Command, []string) error {
			p := new(process)
			p.parent = newPeer(stdout, map[string]handler{
				"open":    handle(p.open),
				"prepare": handle(p.prepare),
				"begin":   handle(p.begin),
				"finish":  handle(p.finish),
				"watch":   handle(p.watch),
				"write":   handle(p.write),
				"await":   handle(p.await),
				"audit":   handle(p.audit),
				"play":    handle(p.play),
				"collect": handle(p.collect),
			})
			if err := p.parent.serve(stdin); err != nil {
				return failure{err}
			}
			return nil
		},
	}
}

// none is the body of a call or answer that says nothing.
type none struct{}

// cacheOrder tells a process what cache to make.
type cacheOrder struct {
	Redis     string            `json:"redis,omitempty"`
	Memcached []string          `json:"memcached,omitempty"`
	Dial      map[string]string `json:"dial,omitempty"` // where to connect to in place of a memcached server
	Prefix    string            `json:"prefix"`
	LeaseLife time.Duration     `json:"lease_life"`          // zero: no leases
	Bus       bool              `json:"bus"`                 // over the Redis
	BusRedis  string            `json:"bus_redis,omitempty"` // if that is another URL
	L1TTL     time.Duration     `json:"l1_ttl"`
	Keys      int               `json:"keys"`
	Number    int               `json:"number"` // of the process, from 0
	Times     cacheTimes        `json:"times"`
}

// cacheTimes are limits of a cache; zero for the default.
type cacheTimes struct {
	Timeout   time.Duration `json:"timeout"`   // of the shared tier, and of the bus
	Probe     time.Duration `json:"probe"`     // of the shared tier's breaker
	Retry     time.Duration `json:"retry"`     // from failed writes to the next try, at most
	Heartbeat time.Duration `json:"heartbeat"` // of the bus
	Ping      time.Duration `json:"ping"`      // of the bus
	Clamp     time.Duration `json:"clamp"`     // of the bus
}

// keyValue is a key's value: whose it is, and how many writes of the key came before it.
type keyValue struct {
	Key     int `json:"key"`
	Version int `json:"version"`
}

// loadOrder asks the origin for a key.
type loadOrder struct {
	Key int `json:"key"`
}

func fleetKey(i int) string { return fmt.Sprint("k", i) }

// fleetTTL is how long entries live: longer than a scenario takes, and short enough for
// what a crash may leave in the server.
const fleetTTL = 5 * time.Minute

// process is one process of a fleet.
type process struct {
	parent *peer
	number int // from 0
	keys   int
	cache  *coordinator.Cache[string, keyValue]

	mu      sync.Mutex
	burst   *burst
	watched *watching

	recording atomic.Pointer[recording]
}

func (p *process) open(ctx context.Context, o cacheOrder) (none, error) {
	bytes, err := o.store()
	if err != nil {
		return none{}, err
	}
	var bus tier.Bus
	if o.Bus {
		url := cmp.Or(o.BusRedis, o.Redis)
		if bus, err = redis.OpenBus(url, redis.BusOptions{Prefix: o.Prefix, Timeout: o.Times.Timeout, Ping: o.Times.Ping}); err != nil {
			return none{}, err
		}
	}
	p.keys, p.number = o.Keys, o.Number
	p.cache, err = coordinator.New(coordinator.Options[string, keyValue]{
		Name: "fleet",
		Tiers: []tier.Tier[string, keyValue]{
			{Name: "l1", Store: lru.New[string, keyValue](2 * o.Keys), TTL: o.L1TTL},
			{
				Name: "l2", Store: tier.Encode[string, keyValue](bytes, codec.JSON[keyValue]()),
				Timeout: o.Times.Timeout, Breaker: tier.Breaker{Probe: o.Times.Probe},
			},
		},
		Lifetime:   policy.Lifetime{TTL: fleetTTL},
		Lease:      coordinator.Lease{Life: o.LeaseLife},
		Backoff:    policy.Backoff{Initial: o.Times.Retry, Max: o.Times.Retry},
		Bus:        bus,
		BusOptions: coordinator.BusOptions{Heartbeat: o.Times.Heartbeat, Clamp: o.Times.Clamp},
		Limits:     coordinator.Limits{LoadTimeout: loadTimeout},
		Load: func(ctx context.Context, key string) (v keyValue, err error) {
			var i int
			if _, err := fmt.Sscanf(key, "k%d", &i); err != nil {
				return v, err
			}
			began := fleetNow()
			err = p.parent.call(ctx, "load", loadOrder{Key: i}, &v)
			p.loaded(i, began, v, err)
			return v, err
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	for err == nil && o.Bus && !p.cache.Stats().Bus.Connected {
		err = sleep(ctx, time.Millisecond)
	}
	return none{}, err
}

func (o cacheOrder) store() (tier.Bytes, error) {
	if o.Redis != "" {
		return redis.Open(o.Redis, redis.Options{Prefix: o.Prefix})
	}
	m := memcached.Options{Servers: o.Memcached, Prefix: o.Prefix}
	if len(o.Dial) > 0 {
		var d net.Dialer
		m.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if other, ok := o.Dial[address]; ok {
				address = other
			}
			return d.DialContext(ctx, network, address)
		}
	}
	return memcached.Open(m)
}

// read reads one key, and returns the version that it got.
func (p *process) read(ctx context.Context, key int) (int, error) {
	v, err := p.cache.Get(ctx, fleetKey(key))
	if err == nil && v.Key != key {
		err = fmt.Errorf("key %d was answered with the value of %d", key, v.Key)
	}
	return v.Version, err
}

// tallied is what a process's reads have come to.
type tallied struct {
	Reads   int           `json:"reads"`
	Failed  int           `json:"failed"`
	Longest time.Duration `json:"longest"`
	Error   string        `json:"error,omitempty"` // the first
}

func (t *tallied) add(took time.Duration, err error) {
	t.Reads++
	t.Longest = max(t.Longest, took)
	if err != nil {
		t.Failed++
		if t.Error == "" {
			t.Error = err.Error()
		}
	}
}

// burst is a read of all keys by all callers at once.
type burst struct {
	begin   chan struct{}
	started sync.WaitGroup
	ended   sync.WaitGroup
	mu      sync.Mutex
	tallied
}

// burstOrder prepares a burst: as many callers ask for each key.
type burstOrder struct {
	Callers int `json:"callers"`
}

// prepare makes the callers, who wait for begin.
func (p *process) prepare(_ context.Context, o burstOrder) (none, error) {
	b := &burst{begin: make(chan struct{})}
	p.mu.Lock()
	p.burst = b
	p.mu.Unlock()
	for range o.Callers {
		for key := range p.keys {
			b.started.Add(1)
			b.ended.Go(func() {
				<-b.begin
				began := time.Now()
				b.started.Done()
				_, err := p.read(context.Background(), key)
				took := time.Since(began)
				b.mu.Lock()
				defer b.mu.Unlock()
				b.add(took, err)
			})
		}
	}
	return none{}, nil
}

// begin lets the callers go, and answers when all have begun.
func (p *process) begin(context.Context, none) (none, error) {
	b := p.currentBurst()
	if b == nil {
		return none{}, errors.New("no burst")
	}
	close(b.begin)
	b.started.Wait()
	return none{}, nil
}

// finish answers when all callers have what they asked for.
func (p *process) finish(context.Context, none) (tallied, error) {
	b := p.currentBurst()
	if b == nil {
		return tallied{}, errors.New("no burst")
	}
	b.ended.Wait()
	return b.tallied, nil
}

func (p *process) currentBurst() *burst {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.burst
}

// watching is callers who read keys at random, over and over.
type watching struct {
	stop  chan struct{}
	ended sync.WaitGroup

	mu   sync.Mutex
	log  []sighting
	last []int // by key, the version that was read last; -1 before
	tallied
}

// sighting is one read.
type sighting struct {
	key, version int
	began        int64 // wall clock, in ns
}

// watchOrder begins a watch.
type watchOrder struct {
	Callers int    `json:"callers"`
	Seed    uint64 `json:"seed"`
}

// watchPause is what a caller waits between two reads, give or take a half.
const watchPause = 10 * time.Millisecond

func (p *process) watch(_ context.Context, o watchOrder) (none, error) {
	w := &watching{stop: make(chan struct{}), last: make([]int, p.keys)}
	for i := range w.last {
		w.last[i] = -1
	}
	p.mu.Lock()
	p.watched = w
	p.mu.Unlock()
	for i := range o.Callers {
		w.ended.Go(func() { p.watchWith(w, rand.New(rand.NewPCG(o.Seed, uint64(i)))) })
	}
	return none{}, nil
}

func (p *process) watchWith(w *watching, r *rand.Rand) {
	for {
		select {
		case <-w.stop:
			return
		case <-time.After(watchPause/2 + time.Duration(r.Int64N(int64(watchPause)))):
		}
		key, began := r.IntN(p.keys), time.Now()
		version, err := p.read(context.Background(), key)
		took := time.Since(began)
		w.mu.Lock()
		w.add(took, err)
		if err == nil {
			w.log = append(w.log, sighting{key, version, began.UnixNano()})
			w.last[key] = version
		}
		w.mu.Unlock()
	}
}

func (p *process) currentWatch() (*watching, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched == nil {
		return nil, errors.New("no watch")
	}
	return p.watched, nil
}

// writeOrder writes a key: the new version, or a deletion after which it is loaded.
type writeOrder struct {
	keyValue
	Delete bool `json:"delete"`
}

// wrote is what a write has come to.
type wrote struct {
	Returned int64  `json:"returned"` // wall clock, in ns
	Missed   bool   `json:"missed"`   // a tier could not be written, and will be tried again
	Error    string `json:"error"`    // nothing was done
}

func (p *process) write(ctx context.Context, o writeOrder) (wrote, error) {
	var err error
	if o.Delete {
		err = p.cache.Delete(ctx, fleetKey(o.Key))
	} else {
		err = p.cache.Set(ctx, fleetKey(o.Key), o.keyValue)
	}
	w := wrote{Returned: time.Now().UnixNano()}
	if missed := (*coordinator.WriteError)(nil); errors.As(err, &missed) {
		w.Missed = true
	} else if err != nil {
		w.Error = err.Error()
	}
	return w, nil
}

// written is a write that has returned.
type written struct {
	keyValue
	Returned int64 `json:"returned"`
}

// await answers when each of the written keys was read here in its new version, and not
// in an older one since.
func (p *process) await(ctx context.Context, all []written) (none, error) {
	w, err := p.currentWatch()
	if err != nil {
		return none{}, err
	}
	for {
		w.mu.Lock()
		left := 0
		for _, to := range all {
			if w.last[to.Key] < to.Version {
				left++
			}
		}
		w.mu.Unlock()
		if left == 0 {
			return none{}, nil
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-w.stop:
			return none{}, errors.New("the watch is over")
		case <-ctx.Done():
			return none{}, ctx.Err()
		}
	}
}

// auditOrder ends a watch and asks for its stale reads.
type auditOrder struct {
	Written []written `json:"written"`
	Since   int64     `json:"since"` // what stale reads are timed from; 0: each write's return
}

// audited is what a watch has seen.
type audited struct {
	tallied
	Stale int           `json:"stale"` // reads that began after a write had returned, and got what was before
	Last  time.Duration `json:"last"`  // how late the last of them began; 0 without any
}

func (p *process) audit(_ context.Context, o auditOrder) (a audited, err error) {
	w, err := p.currentWatch()
	if err != nil {
		return a, err
	}
	close(w.stop)
	w.ended.Wait()
	a.tallied = w.tallied
	writes := make(map[int]written, len(o.Written))
	for _, to := range o.Written {
		writes[to.Key] = to
	}
	for _, r := range w.log {
		to, ok := writes[r.key]
		if !ok || r.version >= to.Version || r.began <= to.Returned {
			continue
		}
		a.Stale++
		since := to.Returned
		if o.Since != 0 {
			since = o.Since
		}
		a.Last = max(a.Last, time.Duration(r.began-since))
	}
	return a, nil
}
