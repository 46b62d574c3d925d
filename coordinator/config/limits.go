package config

import (
	"github.com/terracecache/terrace/coordinator"
	"github.com/terracecache/terrace/policy"
)

func (l *limitsSpec) limits() coordinator.Limits {
	return coordinator.Limits{
		Flights:     int(l.Flights.n),
		Loads:       int(l.Loads.n),
		Background:  int(l.Background.n),
		LoadTimeout: l.LoadTimeout.Duration,
		Recovery:    int(l.Recovery.n),
	}
}

func (b *backoffSpec) backoff() policy.Backoff {
	return policy.Backoff{Initial: b.Initial.Duration, Max: b.Max.Duration}
}
