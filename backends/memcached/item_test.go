package memcached

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier"
)

// lifetime returns the least and the most that a server with our clock keeps an item:
// its clock ticks once a second, so the last second may be cut.
func lifetime(t *testing.T, expiration int32, now time.Time) (least, most time.Duration) {
	t.Helper()
	switch {
	case expiration <= 0:
		t.Fatalf("expiration %d: for ever, or gone at once", expiration)
	case expiration <= 30*24*60*60:
		most = time.Duration(expiration) * time.Second
	default:
		most = time.Unix(int64(expiration), 0).Sub(now)
	}
	return most - time.Second, most
}

func TestC54NoTTLIsForEverOrGoneAtOnce(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	end := time.Unix(math.MaxInt32, 0)
	for _, ttl := range []time.Duration{
		1, time.Microsecond, time.Millisecond, 500 * time.Millisecond, 999 * time.Millisecond, time.Second, time.Second + 1,
		1500 * time.Millisecond, time.Minute, 30*day - 2*time.Second, 30*day - time.Second, 30*day - 1, 30 * day, 30*day + 1,
		30*day + time.Second, 31 * day, 400 * day, 69 * 365 * day, math.MaxInt64 - 1,
	} {
		least, most := lifetime(t, expiration(ttl, now), now)
		if now.Add(ttl).After(end.Add(-2 * time.Second)) {
			if at := now.Add(most); !at.Equal(end) {
				t.Errorf("ttl %v: ends at %v, want the last time there is, %v", ttl, at, end)
			}
			continue
		}
		if least < ttl || most > ttl+2*time.Second {
			t.Errorf("ttl %v: kept for %v to %v", ttl, least, most)
		}
	}
	if got := expiration(tier.Forever, now); got != 0 {
		t.Errorf("forever: got %d, want 0", got)
	}
}

// The protocol's times end in January 2038.
func TestTTLsAboutTheEndOfUnixTimeInMemcached(t *testing.T) {
	end := time.Unix(math.MaxInt32, 0)
	for _, off := range []time.Duration{-31 * 24 * time.Hour, -24 * time.Hour, -time.Second, 0, time.Second, 1e6 * time.Hour} {
		for _, ttl := range []time.Duration{time.Second, 40 * 24 * time.Hour, math.MaxInt64 - 1} {
			least, _ := lifetime(t, expiration(ttl, end.Add(off)), end.Add(off))
			if want := min(ttl, 30*24*time.Hour-time.Second); least < want {
				t.Errorf("ttl %v at the end %v: kept for %v, want at least %v", ttl, off, least, want)
			}
		}
	}
}

func TestItemKeys(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		prefix, key string
		hashed      bool
	}{
		{"", "sku-1", false},
		{"p:", "sku-1", false},
		{"", x(250), false},
		{"", x(251), true},
		{"p:", x(248), false},
		{"p:", x(249), true},
		{"", "", true},
		{"p:", "", true},
		{"", " ", true},
		{"", "a b", true},
		{"", "a\n", true},
		{"", "\x00", true},
		{"", "\x7f", true},
		{"", strings.Repeat("日", 84), true},
		{"", "\xff", true},
		{"", hashMark, true},
	} {
		s := &Store{options: Options{Prefix: c.prefix}}
		got, hashed := s.itemKey(c.key)
		if hashed != c.hashed {
			t.Errorf("prefix %q, key %q: hashed %v, want %v", c.prefix, c.key, hashed, c.hashed)
		}
		if !hashed && got != c.prefix+c.key {
			t.Errorf("prefix %q, key %q: got %q", c.prefix, c.key, got)
		}
		if got == "" || len(got) > maxKey || !isGraphic(got) || !strings.HasPrefix(got, c.prefix) {
			t.Errorf("prefix %q, key %q: memcached does not take %q", c.prefix, c.key, got)
		}
		// What a hashed key became is another key when a user names it.
		if again, _ := s.itemKey(strings.TrimPrefix(got, c.prefix)); hashed && again == got {
			t.Errorf("key %q and key %q are both kept under %q", c.key, strings.TrimPrefix(got, c.prefix), got)
		}
	}
}

func TestAnItemOfAnotherKeyIsNotTakenForOurs(t *testing.T) {
	s := &Store{}
	for _, key := range []string{"", " ", "a b", "b", strings.Repeat("k", 1024)} {
		for _, value := range []string{"", "v", "a b", strings.Repeat("v", 1000)} {
			item := s.newItem(key, []byte(value), time.Minute)
			if got, ours := s.valueOf(itemOf(item), key); !ours || got == nil || string(got) != value {
				t.Errorf("key %q: got %q, %v, want %q", key, got, ours, value)
			}
			for _, other := range []string{" b", "a  b", "", "ab ", "  "} {
				if got, ours := s.valueOf(itemOf(item), other); other != key && ours {
					t.Errorf("an item of key %q gives %q to key %q", key, got, other)
				}
			}
			for cut := range min(len(item.Value), 20) {
				broken := *item
				broken.Value = item.Value[:cut]
				if got, ours := s.valueOf(itemOf(&broken), key); ours && item.Flags == flagsHashed {
					t.Errorf("key %q, item cut to %d bytes: got %q", key, cut, got)
				}
			}
		}
	}
}

func TestReplyErrors(t *testing.T) {
	get := func(line string) error { return fmt.Errorf("memcache: unexpected line in get response: %q", line) }
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("memcache: unexpected response line from %q: %q", "set", "SERVER_ERROR out of memory storing object\r\n"), "SERVER_ERROR out of memory storing object"},
		{fmt.Errorf("memcache: unexpected response line: %q", "ERROR\r\n"), "ERROR"},
		{get("SERVER_ERROR out of memory writing get response\r\n"), "SERVER_ERROR out of memory writing get response"},
		{get("a secret: \"value\"\r\n"), "unexpected answer"},
		{get("ERRORS of a secret\r\n"), "unexpected answer"},
		{fmt.Errorf("memcache: unexpected end"), "unexpected answer"},
	} {
		got := replied(c.err)
		if !isReply(got) || got.Error() != c.want {
			t.Errorf("%v: got %v, want %s", c.err, got, c.want)
		}
	}
}

// Items outlive releases: what this test holds still must not change.
func TestTheNamesOfHashedKeysStayTheSame(t *testing.T) {
	got, _ := (&Store{options: Options{Prefix: "p:"}}).itemKey("")
	if want := "p:#sha256#47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"; got != want { // SHA-256 of nothing
		t.Errorf("got %q, want %q", got, want)
	}
}
