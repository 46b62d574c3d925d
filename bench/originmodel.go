package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terracecache/terrace/tier"
)

// originModel is how an origin answers.
type originModel interface {
	// load answers a call that has been counted and began then, beside which so many run,
	// itself among them. It raises the peak unless it refuses.
	load(ctx context.Context, o *origin, key string, began tier.Instant, running int64) ([]byte, error)
	// close releases what the model holds.
	close()
}

// originNames are the models that need no server.
var originNames = []string{"fixed", "log-normal", "limited", "failing"}

// The errors of origins that fail.
var (
	errOverCapacity = errors.New("the origin refuses a call above its capacity")
	errOriginDown   = errors.New("the origin fails")
)

// newOrigin makes the origin of the settings, which are valid.
func (s *settings) newOrigin() *origin {
	o := newOrigin(s.OriginLatency, s.ValueSize)
	switch s.Origin {
	case "fixed":
	case "log-normal":
		o.model = &logNormal{sigma: s.OriginSigma, rnd: rand.New(rand.NewPCG(s.Seed, 1))}
	case "limited":
		o.model = limited{capacity: int64(s.OriginCapacity)}
	case "failing":
		middle, half := seconds(s.Seconds)/2, seconds(s.Seconds*s.OriginFails)/2
		o.model = failing{from: middle - half, until: middle + half}
	default:
		o.model = newHTTPOrigin(s.Origin, s.Concurrency)
	}
	return o
}

// mayFail reports whether the origin's errors are part of what is measured.
func (o *origin) mayFail() bool { return o.model != nil }

// close releases what the origin holds.
func (o *origin) close() {
	if o.model != nil {
		o.model.close()
	}
}

// logNormal takes the latency in the median: the logarithm of what it takes has a
// normal distribution of the standard deviation sigma.
type logNormal struct {
	sigma float64

	mu  sync.Mutex
	rnd *rand.Rand
}

func (l *logNormal) load(ctx context.Context, o *origin, key string, began tier.Instant, running int64) ([]byte, error) {
	raise(&o.peak, running)
	l.mu.Lock()
	factor := math.Exp(l.sigma * l.rnd.NormFloat64())
	l.mu.Unlock()
	if err := pause(ctx, time.Duration(factor*float64(o.latency))); err != nil {
		return nil, err
	}
	return o.value(key, began), nil
}

func (*logNormal) close() {}

// limited refuses at once what comes when its capacity is reached.
type limited struct{ capacity int64 }

func (l limited) load(ctx context.Context, o *origin, key string, began tier.Instant, running int64) ([]byte, error) {
	if running > l.capacity {
		return nil, errOverCapacity
	}
	raise(&o.peak, running)
	if err := pause(ctx, o.latency); err != nil {
		return nil, err
	}
	return o.value(key, began), nil
}

func (limited) close() {}

// failing fails what comes in a while that begins and ends so long after the mark. It
// takes its latency for that, too.
type failing struct{ from, until time.Duration }

func (f failing) load(ctx context.Context, o *origin, key string, began tier.Instant, running int64) ([]byte, error) {
	raise(&o.peak, running)
	if err := pause(ctx, o.latency); err != nil {
		return nil, err
	}
	if marked := tier.Instant(o.marked.Load()); marked != 0 {
		if since := began.Sub(marked); since >= f.from && since < f.until {
			return nil, errOriginDown
		}
	}
	return o.value(key, began), nil
}

func (failing) close() {}

// validateOrigin returns what is wrong with the origin that is asked for.
func (s *settings) validateOrigin() error {
	for _, err := range []error{
		between("origin-sigma", s.OriginSigma, 0, 2),
		between("origin-capacity", s.OriginCapacity, 1, maxConcurrency),
		between("origin-fails", s.OriginFails, 0, 1),
		between("stale-if-error", s.StaleIfError, 0, maxDuration),
	} {
		if err != nil {
			return err
		}
	}
	if strings.Contains(s.Origin, "://") {
		return validateURL(s.Origin)
	}
	if !slices.Contains(originNames, s.Origin) {
		return fmt.Errorf("--origin: there is no %q: want %s, or a URL", s.Origin, strings.Join(originNames, ", "))
	}
	return nil
}

// originLabel tells people what the origin does.
func (s *settings) originLabel() string {
	switch s.Origin {
	case "fixed":
		return fmt.Sprintf("takes %v", s.OriginLatency)
	case "log-normal":
		return fmt.Sprintf("takes %v in the median, log-normal of sigma %v", s.OriginLatency, s.OriginSigma)
	case "limited":
		return fmt.Sprintf("takes %v, refuses more than %d at once", s.OriginLatency, s.OriginCapacity)
	case "failing":
		return fmt.Sprintf("takes %v, fails for %v %% of the time, in the middle of the open loop", s.OriginLatency, 100*s.OriginFails)
	default:
		return urlLabel(s.Origin)
	}
}
