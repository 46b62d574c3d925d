package tier

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

func TestInstantAdd(t *testing.T) {
	const least = Instant(math.MinInt64)
	for _, c := range []struct {
		i    Instant
		d    time.Duration
		want Instant
	}{
		{0, 0, 0},
		{5, 3, 8},
		{5, -8, -3},
		{Never, -1, Never},
		{Never, math.MinInt64, Never},
		{0, Forever, Never},
		{least, Forever, Never},
		{-5, Forever - 1, Never - 6},
		{1, Forever - 1, Never},
		{2, Forever - 1, Never},
		{Never - 1, 2, Never},
		{least, -1, least},
		{-2, math.MinInt64, least},
		{1, math.MinInt64, least + 1},
	} {
		if got := c.i.Add(c.d); got != c.want {
			t.Errorf("Instant(%d).Add(%d) = %d, want %d", c.i, c.d, got, c.want)
		}
	}
}

func TestInstantSub(t *testing.T) {
	const least = Instant(math.MinInt64)
	for _, c := range []struct {
		i, j Instant
		want time.Duration
	}{
		{8, 5, 3},
		{5, 8, -3},
		{Never, 0, Forever},
		{Never, Never, Forever},
		{Never, least, Forever},
		{0, least, Forever},
		{Never - 1, -2, Forever},
		{least, 1, math.MinInt64},
		{least, Never, math.MinInt64},
		{-2, Never, math.MinInt64},
		{0, Never, -math.MaxInt64},
	} {
		if got := c.i.Sub(c.j); got != c.want {
			t.Errorf("Instant(%d).Sub(%d) = %d, want %d", c.i, c.j, got, c.want)
		}
	}
}

// Against integers without a bound: never wraps round.
func TestInstantSaturates(t *testing.T) {
	edge := func() int64 {
		switch rand.IntN(4) {
		case 0:
			return math.MaxInt64 - rand.Int64N(3)
		case 1:
			return math.MinInt64 + rand.Int64N(3)
		case 2:
			return rand.Int64N(7) - 3
		default:
			return int64(rand.Uint64())
		}
	}
	held := func(x *big.Int) int64 {
		switch {
		case x.IsInt64():
			return x.Int64()
		case x.Sign() > 0:
			return math.MaxInt64
		default:
			return math.MinInt64
		}
	}
	for range 100_000 {
		a, b := edge(), edge()
		if a == math.MaxInt64 {
			continue // Never and Forever have rules of their own
		}
		diff := new(big.Int).Sub(big.NewInt(a), big.NewInt(b))
		if got, want := int64(Instant(a).Sub(Instant(b))), held(diff); got != want {
			t.Fatalf("Instant(%d).Sub(%d) = %d, want %d", a, b, got, want)
		}
		if b == math.MaxInt64 {
			continue
		}
		sum := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		if got, want := int64(Instant(a).Add(time.Duration(b))), held(sum); got != want {
			t.Fatalf("Instant(%d).Add(%d) = %d, want %d", a, b, got, want)
		}
	}
}

func TestNowInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := Now()
		clocks := readClocks()
		time.Sleep(time.Hour)
		if got := Now().Sub(start); got != time.Hour {
			t.Errorf("an hour is %v", got)
		}
		later := readClocks()
		if clocks.mono != start || later.mono.Sub(clocks.mono) != time.Hour || later.wall-clocks.wall != int64(time.Hour) {
			t.Errorf("readClocks = %+v, and an hour later %+v; Now began at %d", clocks, later, start)
		}
	})
}
