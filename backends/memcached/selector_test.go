package memcached

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"testing"
)

func names(n int) []string {
	servers := make([]string, n)
	for i := range servers {
		servers[i] = fmt.Sprintf("10.0.0.%d:11211", i+1)
	}
	return servers
}

func pick(t *testing.T, s *selector, key string) string {
	t.Helper()
	server, err := s.PickServer(key)
	if err != nil {
		t.Fatal(err)
	}
	return server.String()
}

// A server that joins n others takes one key in n+1, and no key moves between the
// others.
func TestAServerThatJoinsTakesItsShareAndNoMore(t *testing.T) {
	const keys = 50_000
	for _, n := range []int{1, 2, 3, 4, 9, 20} {
		before, after := newSelector(names(n)), newSelector(names(n+1))
		joined := names(n + 1)[n]
		moved := 0
		for i := range keys {
			key := fmt.Sprintf("user:%d", i)
			was, is := pick(t, before, key), pick(t, after, key)
			if was == is {
				continue
			}
			moved++
			if is != joined {
				t.Fatalf("%s moved from %s to %s when %s joined", key, was, is, joined)
			}
		}
		got, want := float64(moved)/keys, 1/float64(n+1)
		if math.Abs(got-want) > want/10 {
			t.Errorf("%d servers and one more: %.4f of the keys moved, want about %.4f", n, got, want)
		}
	}
}

func TestKeysAreSpreadEvenly(t *testing.T) {
	const keys = 50_000
	kinds := map[string]func(i int) string{
		"numbers":  func(i int) string { return fmt.Sprint(i) },
		"prefixed": func(i int) string { return fmt.Sprintf("products:v1:%d", i) },
		"suffixed": func(i int) string { return fmt.Sprintf("%d:a rather long ending that is always the same", i) },
	}
	for kind, key := range kinds {
		for _, n := range []int{2, 5, 16} {
			servers := newSelector(names(n))
			counts := map[string]int{}
			for i := range keys {
				counts[pick(t, servers, key(i))]++
			}
			want := keys / n
			for server, got := range counts {
				if math.Abs(float64(got-want)) > float64(want)/10 {
					t.Errorf("%s over %d servers: %s has %d keys, want about %d", kind, n, server, got, want)
				}
			}
			if len(counts) != n {
				t.Errorf("%s: only %d of %d servers have keys", kind, len(counts), n)
			}
		}
	}
}

func TestTheOrderOfServersDoesNotCount(t *testing.T) {
	forth, back := names(7), names(7)
	slices.Reverse(back)
	a, b := newSelector(forth), newSelector(back)
	for i := range 1000 {
		key := fmt.Sprint(i)
		if got, want := pick(t, a, key), pick(t, b, key); got != want {
			t.Fatalf("key %s: %s in one order, %s in the other", key, got, want)
		}
	}
}

// Processes of different releases share servers: what this test holds still must not
// change.
func TestTheChoiceStaysTheSame(t *testing.T) {
	s := newSelector(names(5))
	want := map[string]string{
		"":          "10.0.0.5:11211",
		"a":         "10.0.0.1:11211",
		"sku-1":     "10.0.0.1:11211",
		"sku-2":     "10.0.0.5:11211",
		"user:1000": "10.0.0.4:11211",
	}
	for key, server := range want {
		if got := pick(t, s, key); got != server {
			t.Errorf("%q: got %s, want %s", key, got, server)
		}
	}
}

func TestEachServerIsVisitedUntilAnError(t *testing.T) {
	var got []string
	stop := errors.New("stop")
	err := newSelector(names(3)).Each(func(a net.Addr) error {
		got = append(got, a.Network()+" "+a.String())
		if len(got) == 2 {
			return stop
		}
		return nil
	})
	if want := []string{"tcp 10.0.0.1:11211", "tcp 10.0.0.2:11211"}; !errors.Is(err, stop) || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	if got := newSelector([]string{"/run/memcached.sock"}).servers[0].addr.Network(); got != "unix" {
		t.Errorf("a path: got network %s", got)
	}
}

func BenchmarkPickServer(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newSelector(names(n))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = s.PickServer("products:v1:sku-1000")
			}
		})
	}
}

func TestNewSelector(t *testing.T) {
	if _, err := NewSelector("a:1", "a:1"); err == nil {
		t.Error("NewSelector took a server twice")
	}
	s, err := NewSelector("a:1", "b:1")
	if err != nil {
		t.Fatal(err)
	}
	if addr, err := s.PickServer("k"); err != nil || addr.String() != "a:1" && addr.String() != "b:1" {
		t.Errorf("PickServer: got %v, %v", addr, err)
	}
}
