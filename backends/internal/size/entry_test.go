package size_test

import (
	"strings"
	"testing"

	"github.com/terracecache/terrace/backends/internal/size"
	"github.com/terracecache/terrace/tier"
)

func TestEntryAgainstTheHeap(t *testing.T) {
	for name, m := range map[string]tier.Meta{
		"plain":     {},
		"absent":    {Absent: true},
		"validator": {Validator: strings.Clone("a validator of 24 bytes.")},
		"tags":      {Tags: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(i int) *tier.Pair[string, []byte] {
				m := m
				if m.Validator != "" {
					m.Validator = text(24)
				}
				for i := range m.Tags {
					m.Tags[i] = text(20)
				}
				return tier.NewPair(text(20), make([]byte, 100), m)
			}
			const own = 1000
			p := of(0)
			got := float64(size.OfEntry[string, []byte](own)(p.Key(), p.Entry()) - own)
			if want := heap(10_000, of); got < 0.97*want || got > 1.03*want {
				t.Errorf("estimate %.0f B, heap %.0f B", got, want)
			}
		})
	}
}
