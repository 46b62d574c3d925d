package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

const (
	stampedeCallers = 10_000
	stampedeLoad    = 200 * time.Millisecond
)

// stampede measures callers that miss one key at once: how long until the last has
// the value, and what is allocated for each. Their goroutines are there before.
func stampede(p *peers) []block {
	b := block{group: "stampede", goroutines: stampedeCallers}
	for _, c := range contestants {
		if c.loads {
			b.subjects = append(b.subjects, stampedeSubject(p, c, stampedeCallers))
		}
	}
	return []block{b}
}

var errNoValue = errors.New("a caller got no value")

func stampedeSubject(p *peers, c contestant[string], callers int) subject {
	round := uint64(0)
	return subject{
		name: c.name, module: c.module,
		measure: func(context.Context) (sample, error) {
			round++ // what cannot be emptied is asked for another key
			key := textKey(keySeed, round)
			var loads atomic.Int64
			opened, err := c.open(setup[string]{capacity: roomFor(1), load: func(key string) *payload {
				loads.Add(1)
				time.Sleep(stampedeLoad)
				return textPayload(key)
			}})
			if err != nil {
				return sample{}, err
			}
			defer opened.close()
			s, err := timed(callers, callers, func(int, int) error {
				if opened.get(key) == nil {
					return errNoValue
				}
				return nil
			})
			if n := loads.Load(); n != 1 {
				p.warn("stampede: %s: %d loads", c.name, n)
			}
			s.ns *= float64(callers) // of the whole
			s.heap = s.bytes
			return s, err
		},
	}
}
