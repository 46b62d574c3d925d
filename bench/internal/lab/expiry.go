package lab

import (
	"errors"
	"time"

	"github.com/terracecache/terrace/policy"
)

// Expiry is keys that are all filled at second 0, and each asked for once in every
// second: a key is loaded again in the first second in which its life is over. Loads
// take no time.
type Expiry struct {
	Keys   int
	TTL    time.Duration // at least two seconds
	Jitter float64       // policy.Lifetime.Jitter
	Cycles int           // how often each key is loaded again
}

// Expiries is when the keys were loaded again. In the n-th cycle each of them is for
// the n-th time.
type Expiries struct {
	// Busiest is the most loads of any second, for each cycle.
	Busiest []int
	// Average is loads a second, over the time that all cycles of a key take.
	Average float64
}

// LeastExpiryTTL is the least TTL that keys which are read once a second tell apart.
const LeastExpiryTTL = 2 * time.Second

// Validate returns what is wrong, or nil.
func (e Expiry) Validate() error {
	switch {
	case e.Keys < 1:
		return errors.New("want at least one key")
	case e.TTL < LeastExpiryTTL:
		return errors.New("want a TTL of two seconds or more")
	case e.Cycles < 1:
		return errors.New("want at least one cycle")
	}
	return e.lifetime().Validate()
}

func (e Expiry) lifetime() policy.Lifetime { return policy.Lifetime{TTL: e.TTL, Jitter: e.Jitter} }

// Run draws the life of every entry, by the lifetime's own jitter. e must be valid.
func (e Expiry) Run(seed uint64) Expiries {
	rnd, life := newRand(seed, forLifetimes), e.lifetime()
	loaded := make([]int, e.Keys) // the second of each key's last load
	x := Expiries{Busiest: make([]int, e.Cycles)}
	for n := range x.Busiest {
		loads := make(map[int]int) // by second
		for key := range loaded {
			loaded[key] += askedAgain(life.Value(0, rnd.Float64()).Fresh)
			loads[loaded[key]]++
		}
		for _, l := range loads {
			x.Busiest[n] = max(x.Busiest[n], l)
		}
	}
	seconds := 0
	for _, at := range loaded {
		seconds += at
	}
	x.Average = float64(e.Keys) * float64(e.Cycles) / (float64(seconds) / float64(e.Keys))
	return x
}

// askedAgain returns after how many seconds a key is first asked for when a life is
// over.
func askedAgain(life time.Duration) int {
	return max(1, int((life+time.Second-1)/time.Second))
}
