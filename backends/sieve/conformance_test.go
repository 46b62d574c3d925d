package sieve_test

import (
	"testing"

	"github.com/terracecache/terrace/backends/internal/memtest"
)

func TestConformance(t *testing.T) {
	for _, a := range admissions {
		t.Run(a.String(), func(t *testing.T) {
			memtest.Conformance(t, newStore[string, any](a))
		})
	}
}
