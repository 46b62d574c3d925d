package main

import (
	"math/rand/v2"
	"testing"
)

func TestKeysAre16BytesAndDiffer(t *testing.T) {
	seen := make(map[string]bool)
	for _, key := range newKeys(textKey, 100_000) {
		if len(key) != 16 || seen[key] {
			t.Fatalf("key %q: %d bytes, seen before: %v", key, len(key), seen[key])
		}
		seen[key] = true
	}
}

func TestZipf(t *testing.T) {
	const n, draws = 1000, 200_000
	rank := zipf(n, 1)
	r := rand.New(rand.NewPCG(1, 2))
	var count [n]int
	for range draws {
		count[rank(r)]++
	}
	// The first is drawn in proportion to 1 of the sum of 1/i, which is 7.485 for 1,000.
	for i, want := range map[int]float64{0: draws / 7.485, 1: draws / 7.485 / 2, 9: draws / 7.485 / 10} {
		if got := float64(count[i]); got < 0.9*want || got > 1.1*want {
			t.Errorf("rank %d: drawn %v times, want about %.0f", i+1, got, want)
		}
	}
}
