package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/terracecache/terrace/bench/internal/curve"
	"github.com/terracecache/terrace/bench/internal/replay"
)

// localLatency is what a read of a tier in this process takes, about: too little to decide
// anything.
const localLatency = 200 * time.Nanosecond

// adviceTier is a tier of an alternative.
type adviceTier struct {
	Name     string  `json:"name"`
	Policy   string  `json:"policy"`
	Size     int64   `json:"size"`      // entries
	HitRatio float64 `json:"hit_ratio"` // of all requests
	remote   bool
}

// alternative is what could be run, with what it is expected to do.
type alternative struct {
	Tiers       []adviceTier `json:"tiers"`
	HitRatio    float64      `json:"hit_ratio"`
	OriginLoads float64      `json:"origin_loads"`    // a second
	P99         float64      `json:"p99"`             // seconds
	Mean        float64      `json:"mean"`            // seconds
	Cost        float64      `json:"cost"`            // an hour
	Memory      int64        `json:"memory"`          // bytes in this process
	Least       *float64     `json:"least_hit_ratio"` // of replays that differ; nil: there were none, or one
	Most        *float64     `json:"most_hit_ratio"`
	done        bool
}

// byChance reports whether two replays may differ, even of one seed.
func (c *alternative) byChance() bool { return c.hasTier("tinylfu", "w-tinylfu") }

// bySeed reports whether replays of two seeds may differ.
func (c *alternative) bySeed() bool { return c.byChance() || c.hasTier("sieve") }

func (c *alternative) hasTier(policies ...string) bool {
	return slices.ContainsFunc(c.Tiers, func(t adviceTier) bool { return slices.Contains(policies, t.Policy) })
}

// isCertain reports whether it is known how far replays are apart.
func (c *alternative) isCertain() bool { return c.Least != nil || !c.bySeed() }

// unsteady reports whether replays that differ are far apart.
func (c *alternative) unsteady() bool { return c.Least != nil && *c.Most-*c.Least > steadySpread }

// varies reports whether replays differ by more than is nothing.
func (c *alternative) varies() bool { return c.Least != nil && *c.Most-*c.Least >= 0.001 }

// name is that of a combination in a table.
func (c *alternative) name() string {
	names := make([]string, len(c.Tiers))
	for i, t := range c.Tiers {
		names[i] = t.Name + ":" + t.Policy
		if t.remote {
			names[i] = t.Name + ":remote"
		}
	}
	return strings.Join(names, "+")
}

// argument is what --tiers of trace takes for it.
func (c *alternative) argument() string {
	parts := make([]string, len(c.Tiers))
	for i, t := range c.Tiers {
		parts[i] = fmt.Sprintf("%s:%d:%s", t.Name, t.Size, t.Policy)
	}
	return strings.Join(parts, ",")
}

func (c *alternative) replayed() []replay.Tier {
	tiers := make([]replay.Tier, len(c.Tiers))
	for i, t := range c.Tiers {
		tiers[i] = replay.Tier{Name: t.Name, Policy: t.Policy, Size: t.Size}
	}
	return tiers
}

// take takes over what was estimated.
func (c *alternative) take(e curve.Estimate, err error) {
	if err != nil {
		return
	}
	c.HitRatio, c.done = e.HitRatio, true
	for i := range c.Tiers {
		c.Tiers[i].HitRatio = e.Tiers[i]
	}
}

// estimate returns what was taken over.
func (c *alternative) estimate() curve.Estimate {
	e := curve.Estimate{HitRatio: c.HitRatio}
	for _, t := range c.Tiers {
		e.Tiers = append(e.Tiers, t.HitRatio)
	}
	return e
}

// promised is how far apart what is promised may be from what comes true, in each direction.
const promised = 0.02

// settle takes over how far estimates are apart. One that is exact stays. Else it takes what they
// have in common: the middle of those that are no further apart than twice what is promised, as
// many of them as can be. So it is as likely as can be that the promise is kept by whichever of
// them comes true.
func (c *alternative) settle(estimates []curve.Estimate, exact bool) {
	slices.SortFunc(estimates, func(x, y curve.Estimate) int { return cmp.Compare(x.HitRatio, y.HitRatio) })
	c.Least, c.Most = &estimates[0].HitRatio, &estimates[len(estimates)-1].HitRatio
	if exact {
		return
	}
	var common []curve.Estimate
	for i := range estimates {
		n := i + 1
		for n < len(estimates) && estimates[n].HitRatio-estimates[i].HitRatio <= 2*promised {
			n++
		}
		if n-i > len(common) {
			common = estimates[i:n]
		}
	}
	sum := 0.0
	tiers := make([]float64, len(c.Tiers))
	for _, e := range common {
		sum += e.HitRatio
		for i, t := range e.Tiers {
			tiers[i] += t
		}
	}
	middle := (common[0].HitRatio + common[len(common)-1].HitRatio) / 2
	for i := range tiers { // of the mean, to add up to the middle
		tiers[i] *= middle / max(sum, 1e-9)
	}
	c.take(curve.Estimate{HitRatio: middle, Tiers: tiers}, nil)
}

// isRemote reports whether a tier is.
func (c *alternative) isRemote() bool { return c.Tiers[len(c.Tiers)-1].remote }

// figure works out what the hit ratios mean. A read that is answered by a remote tier
// takes what that takes, and a miss the origin's time beside it.
func (c *alternative) figure(s *adviseSettings, a *advice) {
	miss := 1 - c.HitRatio
	wait := 0.0
	c.Memory, c.Mean = 0, 0
	var times []weighted
	for _, t := range c.Tiers {
		if !t.remote {
			c.Memory += t.Size * a.Environment.EntryBytes
			wait += localLatency.Seconds()
			times = append(times, weighted{wait, t.HitRatio})
			continue
		}
		for _, v := range a.Remote.samples {
			times = append(times, weighted{wait + v, t.HitRatio / float64(len(a.Remote.samples))})
		}
		wait += a.Remote.Mean
	}
	times = append(times, weighted{wait + s.OriginLatency.Seconds(), miss})
	for _, w := range times {
		c.Mean += w.seconds * w.share
	}
	c.P99 = quantile(times, 0.99)
	c.OriginLoads = s.Rate * miss
	c.Cost = c.OriginLoads*3600*s.OriginPrice/1e6 + float64(c.Memory)/(1<<30)*s.MemoryPrice
	if c.isRemote() {
		c.Cost += s.RemotePrice
	}
}

// weighted is how long a share of all reads takes.
type weighted struct{ seconds, share float64 }

// quantile returns what the share q of reads takes at most.
func quantile(times []weighted, q float64) float64 {
	slices.SortFunc(times, func(a, b weighted) int {
		switch {
		case a.seconds < b.seconds:
			return -1
		case a.seconds > b.seconds:
			return 1
		}
		return 0
	})
	sum := 0.0
	for _, w := range times {
		if sum += w.share; sum >= q-1e-9 {
			return w.seconds
		}
	}
	return times[len(times)-1].seconds
}

// figureOfMerit is what alternatives are compared by: those that are no further from the
// best than what is told are as good.
type figureOfMerit struct {
	of       func(*alternative) float64 // the less the better
	absolute float64
	relative float64
}

// choose returns the best under the goal, and of those that are as good one that is
// not slower by a tenth in the mean, and then the simplest: with the fewest tiers, the least
// memory, the most hits.
func (s *adviseSettings) choose(all []*alternative) *alternative {
	var by []figureOfMerit
	switch s.Goal {
	case goalOrigin:
		by = append(by, figureOfMerit{func(c *alternative) float64 { return 1 - c.HitRatio }, 0.001, 0})
	case goalCost:
		by = append(by, figureOfMerit{func(c *alternative) float64 { return c.Cost }, 0, 0.005})
	default:
		by = append(by,
			figureOfMerit{func(c *alternative) float64 { return c.P99 }, 0, 0.02},
			figureOfMerit{func(c *alternative) float64 { return c.Mean }, 0, 0.01})
	}
	by = append(by,
		figureOfMerit{func(c *alternative) float64 { return c.Mean }, 0, 0.1},
		figureOfMerit{func(c *alternative) float64 { return float64(len(c.Tiers)) }, 0, 0},
		figureOfMerit{func(c *alternative) float64 { return float64(c.Memory) }, 0, 0},
		figureOfMerit{func(c *alternative) float64 { return 1 - c.HitRatio }, 0, 0})
	left := slices.Clone(all)
	for _, f := range by {
		best := math.Inf(1)
		for _, c := range left {
			best = min(best, f.of(c))
		}
		limit := best*(1+f.relative) + f.absolute
		left = slices.DeleteFunc(left, func(c *alternative) bool { return f.of(c) > limit })
	}
	return left[0]
}

// refreshAdvice is when entries are loaded again.
type refreshAdvice struct {
	Policy string `json:"policy"`
	Reason string `json:"reason"`
}

// refresh returns when to load again: what readers would wait for at the end of a life is
// what the origin takes.
func (s *adviseSettings) refresh() refreshAdvice {
	const (
		unnoticed = time.Millisecond
		early     = 20 // lives of fewer loads would mostly be ended early
	)
	switch {
	case s.MaxStale > 0:
		return refreshAdvice{"swr", fmt.Sprintf("values may be stale for %v: nobody waits for the origin at the end of a life, and there are no loads more", s.MaxStale)}
	case s.OriginLatency <= unnoticed:
		return refreshAdvice{"fixed", fmt.Sprintf("a load takes %v, which nobody waits long for", s.OriginLatency)}
	case s.Goal == goalOrigin || s.Goal == goalCost:
		return refreshAdvice{"fixed", "values may not be stale, and to load them early is to load more often; one reader's load is all that the end of a life costs"}
	case s.TTL < early*s.OriginLatency:
		return refreshAdvice{"fixed", fmt.Sprintf("values may not be stale, and in a life of %v there is no early for loads of %v", s.TTL, s.OriginLatency)}
	default:
		return refreshAdvice{"xfetch", fmt.Sprintf("values may not be stale, and a load takes %v: keys that are read often are loaded early, so that nobody waits", s.OriginLatency)}
	}
}
