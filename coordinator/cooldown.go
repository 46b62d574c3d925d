package coordinator

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/terracecache/terrace/policy"
	"github.com/terracecache/terrace/tier"
)

// cooldowns remember the keys whose load failed while a stale value was at hand, so
// that the origin is not asked again at every read (L4). The wait is counted from
// the END of the failed load and grows with each failure in a row. Their number is
// bounded; beyond it an arbitrary one is forgotten, which costs one load too many.
type cooldowns[K comparable] struct {
	backoff policy.Backoff

	some atomic.Bool // there are keys; spares the lock where there are none

	mu     sync.Mutex
	memory time.Duration // how long past its wait a failure counts as one in a row
	keys   map[K]cooldown
	swept  tier.Instant // when the last sweep was
}

type cooldown struct {
	failures int
	until    tier.Instant
	forget   tier.Instant // when the failures no longer count as in a row
}

const maxCooldowns = 1 << 16

// newCooldowns is told how long a load may take, as the next failure may come so
// much later than its try began.
func newCooldowns[K comparable](b policy.Backoff, load time.Duration) *cooldowns[K] {
	c := &cooldowns[K]{backoff: b, swept: tier.Now()}
	c.resize(load)
	return c
}

// resize tells how long a load may take from now on.
func (c *cooldowns[K]) resize(load time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memory = addDurations(load, time.Minute)
}

// active reports whether the key is not to be loaded now.
func (c *cooldowns[K]) active(key K, now tier.Instant) bool {
	if !c.some.Load() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweep(now)
	cool, ok := c.keys[key]
	return ok && now < cool.until
}

// failed notes a failure at the given time.
func (c *cooldowns[K]) failed(key K, now tier.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keys == nil {
		c.keys = make(map[K]cooldown)
		c.some.Store(true)
	}
	cool, ok := c.keys[key]
	if !ok || now >= cool.forget {
		cool = cooldown{}
	}
	cool.failures++
	wait := c.backoff.Wait(cool.failures, draw())
	cool.until = now.Add(wait)
	cool.forget = cool.until.Add(c.memory)
	if !ok && len(c.keys) >= maxCooldowns {
		for other := range c.keys {
			delete(c.keys, other)
			break
		}
	}
	c.keys[key] = cool
	c.sweep(now)
}

// sweep forgets all that is over, once in a while. The lock is held.
func (c *cooldowns[K]) sweep(now tier.Instant) {
	if now < c.swept.Add(c.memory) {
		return
	}
	c.swept = now
	for key, cool := range c.keys {
		if now >= cool.forget {
			delete(c.keys, key)
		}
	}
	c.rest()
}

// rest lets go of an empty map. The lock is held.
func (c *cooldowns[K]) rest() {
	if len(c.keys) == 0 {
		c.keys = nil
		c.some.Store(false)
	}
}

// clear forgets the key's failures.
func (c *cooldowns[K]) clear(key K) {
	if !c.some.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, key)
	c.sweep(tier.Now())
	c.rest()
}
