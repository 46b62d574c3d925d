package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

// BytesOptions are what [TestBytesWith] can be told.
type BytesOptions struct {
	// Sleep lets time pass for the store. Nil: time.Sleep.
	Sleep func(time.Duration)

	// Virtual runs each check in a testing/synctest bubble, for stores that wait for
	// nothing outside the process.
	Virtual bool

	// TooLarge is the size of a value that the store does not take. Zero: there is
	// none.
	TooLarge int
}

// TestBytes checks that a byte store keeps the promises of [tier.Bytes], of the
// capabilities that it has, and of [tier.Store] behind [tier.Encode]. Each call of
// newBytes makes a store that is empty and shares no key with another: on a shared
// server, under a prefix of its own. The suite closes it. Without virtual time it
// takes some ten seconds.
func TestBytes(t *testing.T, newBytes func(t testing.TB) tier.Bytes) {
	TestBytesWith(t, newBytes, BytesOptions{})
}

// TestBytesWith is [TestBytes] with options.
func TestBytesWith(t *testing.T, newBytes func(t testing.TB) tier.Bytes, o BytesOptions) {
	s := newBytesSuite(newBytes, o)
	runChecks(t, o.Virtual, s, bytesChecks)
	t.Run("encoded", func(t *testing.T) {
		runChecks(t, o.Virtual, s, encodedChecks)
		TestStoreWith(t, s.encoded(codec.String()), s.encodedOptions())
	})
}

func newBytesSuite(newBytes func(t testing.TB) tier.Bytes, o BytesOptions) bytesSuite {
	if o.Sleep == nil {
		o.Sleep = time.Sleep
	}
	return bytesSuite{newBytes: newBytes, BytesOptions: o}
}

type bytesSuite struct {
	newBytes func(t testing.TB) tier.Bytes
	BytesOptions
}

var bytesChecks = []check[bytesSuite]{
	{"nothing is nil", bytesNothing},
	{"values of every kind", bytesValues},
	{"keys of every kind", bytesKeys},
	{"the last write counts", bytesLastWrite},
	{"slices are not shared", bytesSlices},
	{"ttl", bytesTTL},
	{"a new ttl replaces the old", bytesTTLReplaced},
	{"a value too large", bytesTooLarge},
	{"concurrent use", bytesConcurrent},
	{"a context that has ended", bytesCancelled},
	{"contexts that end", bytesExpiring},
	{"after Close", bytesClosed},
	{"Close during use", bytesCloseDuringUse},
	{"batch", bytesBatch},
	{"batch of every kind of key", bytesBatchKeys},
	{"batch ttl", bytesBatchTTL},
	{"swap", bytesSwap},
	{"swap, one wins", bytesSwapOneWins},
	{"swap ttl", bytesSwapTTL},
	{"clear", bytesClear},
	{"usage", bytesUsage},
}

// open makes a store that is closed when the check ends.
func (s bytesSuite) open(t testing.TB) tier.Bytes {
	t.Helper()
	b := s.newBytes(t)
	if v, ok := b.(tier.Validator); ok {
		if err := v.Validate(); err != nil {
			t.Fatalf("Validate: %v", err)
		}
	}
	t.Cleanup(func() { closeStore(t, b) })
	return b
}

func mustSet(t testing.TB, b tier.Bytes, key, value string, ttl time.Duration) {
	t.Helper()
	if err := b.Set(context.Background(), key, []byte(value), ttl); err != nil {
		t.Fatalf("Set(%s, %s, %v): %v", brief(key), brief(value), ttl, err)
	}
}

func mustGet(t testing.TB, b tier.Bytes, key string) []byte {
	t.Helper()
	value, err := b.Get(context.Background(), key)
	if err != nil {
		t.Fatalf("Get(%s): %v", brief(key), err)
	}
	return value
}

func mustDelete(t testing.TB, b tier.Bytes, key string) {
	t.Helper()
	if err := b.Delete(context.Background(), key); err != nil {
		t.Fatalf("Delete(%s): %v", brief(key), err)
	}
}

// wantBytes fails the test unless the key holds exactly the value.
func wantBytes(t testing.TB, b tier.Bytes, key, want string) {
	t.Helper()
	if got := mustGet(t, b, key); got == nil || string(got) != want {
		t.Errorf("Get(%s) = %s, want %s", brief(key), show(got), brief(want))
	}
}

func wantNothing(t testing.TB, b tier.Bytes, key string) {
	t.Helper()
	if got := mustGet(t, b, key); got != nil {
		t.Errorf("Get(%s) = %s, want nil", brief(key), show(got))
	}
}

func show(b []byte) string {
	if b == nil {
		return "nil"
	}
	return brief(string(b))
}

func bytesNothing(t testing.TB, s bytesSuite) {
	b := s.open(t)
	wantNothing(t, b, "key")
	mustDelete(t, b, "key")
	mustSet(t, b, "key", "value", tier.Forever)
	mustDelete(t, b, "key")
	wantNothing(t, b, "key")
	mustDelete(t, b, "key")
}

func bytesValues(t testing.TB, s bytesSuite) {
	b := s.open(t)
	var all strings.Builder
	for i := range 256 {
		all.WriteByte(byte(i))
	}
	for _, want := range []string{
		"", "\x00", "0", "1", "-1", "null", "\r\n", "END\r\n", "VALUE key 0 1\r\nx\r\nEND\r\n", "$-1\r\n", all.String(),
		strings.Repeat("\xff", 64<<10), strings.Repeat("x", 512<<10),
	} {
		mustSet(t, b, "key", want, tier.Forever)
		wantBytes(t, b, "key", want)
	}
	if err := b.Set(context.Background(), "key", nil, tier.Forever); err != nil {
		t.Errorf("Set of a nil slice: %v", err)
	}
	wantBytes(t, b, "key", "")
}

func bytesKeys(t testing.TB, s bytesSuite) {
	b := s.open(t)
	for i, key := range keys {
		mustSet(t, b, key, fmt.Sprint("value ", i), tier.Forever)
	}
	for i, key := range keys {
		wantBytes(t, b, key, fmt.Sprint("value ", i))
	}
	for i, key := range keys {
		mustDelete(t, b, key)
		wantNothing(t, b, key)
		if i+1 < len(keys) {
			wantBytes(t, b, keys[i+1], fmt.Sprint("value ", i+1))
		}
	}
}

func bytesLastWrite(t testing.TB, s bytesSuite) {
	b := s.open(t)
	for i := range 200 {
		mustSet(t, b, "key", fmt.Sprint(i), tier.Forever)
		wantBytes(t, b, "key", fmt.Sprint(i))
		if i%5 == 0 {
			mustDelete(t, b, "key")
			wantNothing(t, b, "key")
		}
	}
}

func bytesSlices(t testing.TB, s bytesSuite) {
	b := s.open(t)
	value := []byte("value")
	if err := b.Set(context.Background(), "key", value, tier.Forever); err != nil {
		t.Fatalf("Set: %v", err)
	}
	value[0] = 'X'
	got := mustGet(t, b, "key")
	if string(got) != "value" {
		t.Errorf("the slice given to Set was kept: got %q after it changed", got)
	}
	for i := range got {
		got[i] = 'X'
	}
	wantBytes(t, b, "key", "value")
}

// bytesTTL covers the edges of every unit (C19, C54): never for ever by accident,
// never gone at once.
func bytesTTL(t testing.TB, s bytesSuite) {
	b := s.open(t)
	const day = 24 * time.Hour
	short := []time.Duration{1, time.Microsecond - 1, 999 * time.Microsecond, time.Millisecond, 500 * time.Millisecond, 999 * time.Millisecond, 1500 * time.Millisecond}
	long := []time.Duration{time.Hour, 30 * day, 30*day + time.Second, 31 * day, 400 * day, 69 * 365 * day, 200 * 365 * day, math.MaxInt64 - 1, tier.Forever}
	none := []time.Duration{0, -1, -time.Millisecond, -time.Second, -day, math.MinInt64}
	for _, ttl := range slices.Concat(short, long) {
		start := time.Now()
		mustSet(t, b, ttl.String(), "value", ttl)
		got := mustGet(t, b, ttl.String())
		if got == nil && time.Since(start) < ttl/2 {
			t.Errorf("ttl %v: gone at once", ttl)
		}
	}
	for _, ttl := range none {
		mustSet(t, b, ttl.String(), "older", tier.Forever)
		mustSet(t, b, ttl.String(), "value", ttl)
		if got := mustGet(t, b, ttl.String()); got != nil {
			t.Errorf("Get after a Set with ttl %v = %s, want nil", ttl, show(got))
		}
	}
	for _, ttl := range short {
		if !eventually(s.Sleep, ttl+rounding, func() bool { return mustGet(t, b, ttl.String()) == nil }) {
			t.Errorf("ttl %v: still there after %v", ttl, ttl+rounding)
		}
	}
	for _, ttl := range long {
		if mustGet(t, b, ttl.String()) == nil {
			t.Errorf("ttl %v: gone after seconds", ttl)
		}
	}
}

func bytesTTLReplaced(t testing.TB, s bytesSuite) {
	b := s.open(t)
	mustSet(t, b, "longer", "1", 100*time.Millisecond)
	mustSet(t, b, "longer", "2", time.Hour)
	mustSet(t, b, "endless", "1", 100*time.Millisecond)
	mustSet(t, b, "endless", "2", tier.Forever)
	mustSet(t, b, "shorter", "1", tier.Forever)
	mustSet(t, b, "shorter", "2", 100*time.Millisecond)
	if !eventually(s.Sleep, rounding, func() bool { return mustGet(t, b, "shorter") == nil }) {
		t.Errorf("a Set without expiry, then one with ttl 100ms: still there after %v", rounding)
	}
	s.Sleep(time.Second)
	wantBytes(t, b, "longer", "2")
	wantBytes(t, b, "endless", "2")
}

func bytesTooLarge(t testing.TB, s bytesSuite) {
	if s.TooLarge == 0 {
		return
	}
	ctx, b := context.Background(), s.open(t)
	large := make([]byte, s.TooLarge)
	mustSet(t, b, "key", "older", tier.Forever)
	if err := b.Set(ctx, "key", large, tier.Forever); !errors.Is(err, tier.ErrTooLarge) {
		t.Errorf("Set of %d bytes: got error %v, want tier.ErrTooLarge", len(large), err)
	}
	wantNothing(t, b, "key")
	if batch, ok := tier.AsBytesBatcher(b); ok {
		mustSet(t, b, "large", "older", tier.Forever)
		err := batch.SetMany(ctx, []string{"small", "large", "other"}, [][]byte{[]byte("1"), large, []byte("2")},
			[]time.Duration{tier.Forever, tier.Forever, tier.Forever})
		if !errors.Is(err, tier.ErrTooLarge) {
			t.Errorf("SetMany with a value of %d bytes: got error %v, want tier.ErrTooLarge", len(large), err)
		}
		wantNothing(t, b, "large")
		wantBytes(t, b, "small", "1")
		wantBytes(t, b, "other", "2")
	}
	if swap, ok := tier.AsBytesSwapper(b); ok {
		mustSet(t, b, "key", "older", tier.Forever)
		if stored, err := swap.SetIf(ctx, "key", large, tier.Forever, []byte("older")); stored || !errors.Is(err, tier.ErrTooLarge) {
			t.Errorf("SetIf of %d bytes: got %v, %v, want false, tier.ErrTooLarge", len(large), stored, err)
		}
	}
	wantBytes(t, b, "small", "1")
}

// bytesConcurrent has one writer for each key and several readers, who must never
// see less than what was written when they began, nor another key's value.
func bytesConcurrent(t testing.TB, s bytesSuite) {
	ctx, b := context.Background(), s.open(t)
	const writers, rounds = 4, 150
	var written [writers]atomic.Int64 // newest value whose Set or Delete has returned
	g := group{t: t}
	g.run(writers, func(i int) {
		key := fmt.Sprint("key ", i)
		for n := int64(1); n <= rounds; n++ {
			err := b.Set(ctx, key, fmt.Appendf(nil, "%d %d", i, n), tier.Forever)
			if n%10 == 5 && err == nil {
				err = b.Delete(ctx, key)
				n++
			}
			if err != nil {
				t.Errorf("write to %q: %v", key, err)
				return
			}
			written[i].Store(n)
		}
	})
	g.run(2*writers, func(r int) {
		for n := range rounds {
			i := (r + n) % writers
			atLeast := written[i].Load()
			value, err := b.Get(ctx, fmt.Sprint("key ", i))
			if err != nil {
				t.Errorf("Get: %v", err)
				return
			}
			if value == nil {
				continue
			}
			var owner int
			var got int64
			if _, err := fmt.Sscanf(string(value), "%d %d", &owner, &got); err != nil || owner != i {
				t.Errorf("Get of key %d gives %s, which nobody wrote there", i, show(value))
			} else if got < atLeast {
				t.Errorf("Get of key %d gives value %d after write %d had returned", i, got, atLeast)
			}
		}
	})
	g.wait()
}

// calls lists each method that b has, to be called for its error.
func calls(b tier.Bytes) map[string]func(ctx context.Context, key string) error {
	m := map[string]func(context.Context, string) error{
		"Get":    func(ctx context.Context, key string) error { _, err := b.Get(ctx, key); return err },
		"Set":    func(ctx context.Context, key string) error { return b.Set(ctx, key, []byte(key), tier.Forever) },
		"Delete": func(ctx context.Context, key string) error { return b.Delete(ctx, key) },
	}
	if batch, ok := tier.AsBytesBatcher(b); ok {
		m["GetMany"] = func(ctx context.Context, key string) error {
			_, err := batch.GetMany(ctx, []string{key})
			return err
		}
		m["SetMany"] = func(ctx context.Context, key string) error {
			return batch.SetMany(ctx, []string{key}, [][]byte{[]byte(key)}, []time.Duration{tier.Forever})
		}
		m["DeleteMany"] = func(ctx context.Context, key string) error { return batch.DeleteMany(ctx, []string{key}) }
	}
	if swap, ok := tier.AsBytesSwapper(b); ok {
		m["SetIf"] = func(ctx context.Context, key string) error {
			_, err := swap.SetIf(ctx, key, []byte(key), tier.Forever, nil)
			return err
		}
	}
	if c, ok := tier.AsClearer(b); ok {
		m["Clear"] = func(ctx context.Context, _ string) error { return c.Clear(ctx) }
	}
	return m
}

func bytesCancelled(t testing.TB, s bytesSuite) {
	b := s.open(t)
	for name, call := range calls(b) {
		returnsSoon(t, name, func() { _ = call(cancelled(), "key") })
	}
	if batch, ok := tier.AsBytesBatcher(b); ok {
		if values, _ := batch.GetMany(cancelled(), []string{"a", "b"}); len(values) != 2 {
			t.Errorf("GetMany of 2 keys with a cancelled context: %d values, want 2", len(values))
		}
	}
	// A write that says that it was made must have been.
	mustSet(t, b, "key", "older", tier.Forever)
	if err := b.Set(cancelled(), "key", []byte("newer"), tier.Forever); err == nil {
		wantBytes(t, b, "key", "newer")
	}
	if err := b.Delete(cancelled(), "key"); err == nil {
		wantNothing(t, b, "key")
	}
	mustSet(t, b, "key", "value", tier.Forever)
	wantBytes(t, b, "key", "value")
}

// bytesExpiring ends contexts in the midst of calls, which must not mix up the
// answers of later ones.
func bytesExpiring(t testing.TB, s bytesSuite) {
	b := s.open(t)
	const n = 8
	for i := range n {
		mustSet(t, b, fmt.Sprint(i), fmt.Sprint("value ", i), tier.Forever)
	}
	g := group{t: t}
	g.run(n, func(i int) {
		for round := range 40 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(round*round)*time.Microsecond)
			returnsSoon(t, "Get", func() {
				value, err := b.Get(ctx, fmt.Sprint(i))
				if want := fmt.Sprint("value ", i); err == nil && value != nil && string(value) != want {
					t.Errorf("Get(%d) = %s, want %q", i, show(value), want)
				}
			})
			cancel()
		}
	})
	g.wait()
	for i := range n {
		wantBytes(t, b, fmt.Sprint(i), fmt.Sprint("value ", i))
	}
}

func bytesClosed(t testing.TB, s bytesSuite) {
	b := s.open(t)
	mustSet(t, b, "key", "value", tier.Forever)
	closeStore(t, b)
	closeStore(t, b)
	for name, call := range calls(b) {
		if err := call(context.Background(), "key"); !errors.Is(err, tier.ErrClosed) {
			t.Errorf("%s after Close: got error %v, want tier.ErrClosed", name, err)
		}
	}
	if m, ok := tier.AsMeasurer(b); ok {
		m.Usage() // must not panic
	}
}

func bytesCloseDuringUse(t testing.TB, s bytesSuite) {
	for range 5 {
		b := s.open(t)
		ctx := context.Background()
		started := make(chan struct{}, 100)
		var closed atomic.Bool
		g := group{t: t}
		g.run(10, func(i int) {
			for n := 0; ; n++ {
				was := closed.Load()
				for name, call := range calls(b) {
					err := call(ctx, fmt.Sprint(i))
					if was && !errors.Is(err, tier.ErrClosed) {
						t.Errorf("%s after Close: got error %v, want tier.ErrClosed", name, err)
					}
				}
				if was {
					return
				}
				if n == 0 {
					started <- struct{}{}
				}
				s.Sleep(time.Microsecond) // lets virtual time go on where a call waits
			}
		})
		for range 10 {
			<-started
		}
		g.run(2, func(int) {
			closeStore(t, b)
			closed.Store(true)
		})
		g.wait()
	}
}

func bytesBatch(t testing.TB, s bytesSuite) {
	ctx, b := context.Background(), s.open(t)
	batch, ok := tier.AsBytesBatcher(b)
	if !ok {
		return
	}
	for _, none := range [][]string{nil, {}} {
		if values, err := batch.GetMany(ctx, none); len(values) != 0 || err != nil {
			t.Errorf("GetMany of no keys = %v, %v", values, err)
		}
		if err := batch.SetMany(ctx, none, nil, nil); err != nil {
			t.Errorf("SetMany of no keys: %v", err)
		}
		if err := batch.DeleteMany(ctx, none); err != nil {
			t.Errorf("DeleteMany of no keys: %v", err)
		}
	}

	forever := slices.Repeat([]time.Duration{tier.Forever}, 5)
	err := batch.SetMany(ctx, []string{"a", "b", "a", "empty", "a"}, [][]byte{[]byte("a1"), []byte("b1"), []byte("a2"), {}, []byte("a3")}, forever)
	if err != nil {
		t.Fatalf("SetMany: %v", err)
	}
	wantBytes(t, b, "a", "a3")
	wantMany(t, batch,
		[]string{"missing", "b", "a", "b", "empty", "missing", "a"},
		[]string{"-", "b1", "a3", "b1", "", "-", "a3"})

	got, err := batch.GetMany(ctx, []string{"a", "a"})
	if err != nil {
		t.Fatalf("GetMany: %v", err)
	}
	got[0][0] = 'X'
	if string(got[1]) != "a3" {
		t.Errorf("a repeated key's values share memory: %q", got[1])
	}

	if err := batch.DeleteMany(ctx, []string{"a", "missing", "a", "empty"}); err != nil {
		t.Fatalf("DeleteMany: %v", err)
	}
	wantMany(t, batch, []string{"a", "b", "empty"}, []string{"-", "b1", "-"})

	const n = 1000
	names, values := make([]string, n), make([][]byte, n)
	for i := range n {
		names[i], values[i] = fmt.Sprint("many ", i), fmt.Append(nil, i)
	}
	if err := batch.SetMany(ctx, names, values, slices.Repeat([]time.Duration{tier.Forever}, n)); err != nil {
		t.Fatalf("SetMany of %d: %v", n, err)
	}
	many, err := batch.GetMany(ctx, names)
	if err != nil || len(many) != n {
		t.Fatalf("GetMany of %d: %d values, %v", n, len(many), err)
	}
	for i, value := range many {
		if !bytes.Equal(value, values[i]) {
			t.Fatalf("GetMany of %d: value %d is %s, want %q", n, i, show(value), values[i])
		}
	}
}

// wantMany compares what the keys hold; "-" stands for nothing.
func wantMany(t testing.TB, batch tier.BytesBatcher, keys, want []string) {
	t.Helper()
	values, err := batch.GetMany(context.Background(), keys)
	if err != nil {
		t.Errorf("GetMany: %v", err)
	}
	if len(values) != len(keys) {
		t.Fatalf("GetMany of %d keys gives %d values", len(keys), len(values))
	}
	for i, value := range values {
		if (value == nil) != (want[i] == "-") || value != nil && string(value) != want[i] {
			t.Errorf("GetMany: value %d, of key %s, is %s, want %q", i, brief(keys[i]), show(value), want[i])
		}
	}
}

func bytesBatchKeys(t testing.TB, s bytesSuite) {
	ctx, b := context.Background(), s.open(t)
	batch, ok := tier.AsBytesBatcher(b)
	if !ok {
		return
	}
	values, want := make([][]byte, len(keys)), make([]string, len(keys))
	for i := range keys {
		want[i] = fmt.Sprint("value ", i)
		values[i] = []byte(want[i])
	}
	if err := batch.SetMany(ctx, keys, values, slices.Repeat([]time.Duration{tier.Forever}, len(keys))); err != nil {
		t.Fatalf("SetMany: %v", err)
	}
	wantMany(t, batch, keys, want)
	for i, key := range keys {
		wantBytes(t, b, key, want[i])
	}
	if err := batch.DeleteMany(ctx, keys); err != nil {
		t.Fatalf("DeleteMany: %v", err)
	}
	wantMany(t, batch, keys, slices.Repeat([]string{"-"}, len(keys)))
}

func bytesBatchTTL(t testing.TB, s bytesSuite) {
	ctx, b := context.Background(), s.open(t)
	batch, ok := tier.AsBytesBatcher(b)
	if !ok {
		return
	}
	names := []string{"short", "long", "zero", "endless", "negative"}
	for _, name := range names {
		mustSet(t, b, name, "older", tier.Forever)
	}
	values := slices.Repeat([][]byte{[]byte("new")}, len(names))
	ttls := []time.Duration{100 * time.Millisecond, 400 * 24 * time.Hour, 0, tier.Forever, -1}
	if err := batch.SetMany(ctx, names, values, ttls); err != nil {
		t.Fatalf("SetMany: %v", err)
	}
	wantMany(t, batch, names[1:], []string{"new", "-", "new", "-"})
	if !eventually(s.Sleep, rounding, func() bool { return mustGet(t, b, "short") == nil }) {
		t.Errorf("ttl 100ms in a batch: still there after %v", rounding)
	}
	wantMany(t, batch, names, []string{"-", "new", "-", "new", "-"})
}

func bytesSwap(t testing.TB, s bytesSuite) {
	ctx, b := context.Background(), s.open(t)
	swap, ok := tier.AsBytesSwapper(b)
	if !ok {
		return
	}
	setIf := func(key, value, head string, want bool) {
		t.Helper()
		var h []byte
		if head != "" {
			h = []byte(head)
		}
		stored, err := swap.SetIf(ctx, key, []byte(value), tier.Forever, h)
		if err != nil || stored != want {
			t.Errorf("SetIf(%s, %s, head %q) = %v, %v, want %v", brief(key), brief(value), head, stored, err, want)
		}
	}
	setIf("key", "first", "other", false)
	wantNothing(t, b, "key")
	setIf("key", "first", "", true)
	wantBytes(t, b, "key", "first")
	setIf("key", "second", "", false)
	setIf("key", "second", "fir", false)
	setIf("key", "second", "first!", false)
	wantBytes(t, b, "key", "first")
	setIf("key", "second", "first", true)
	wantBytes(t, b, "key", "second")

	// Only the head counts, whatever bytes it is of.
	head := "\x00\xff\r\n %s*[]\\\x00\x01\x02\x03\x04"
	if len(head) != tier.HeadSize {
		t.Fatalf("the test's head has %d bytes", len(head))
	}
	mustSet(t, b, "key", head+"tail", tier.Forever)
	setIf("key", "third", head[:tier.HeadSize-1], false)
	setIf("key", "third", head[:tier.HeadSize-1]+"X", false)
	setIf("key", "third", head, true)
	wantBytes(t, b, "key", "third")
	mustSet(t, b, "key", head, tier.Forever)
	setIf("key", "fourth", head, true)

	// Nothing and an empty value are one.
	mustSet(t, b, "key", "", tier.Forever)
	setIf("key", "fifth", "x", false)
	setIf("key", "fifth", "", true)
	mustDelete(t, b, "key")
	setIf("key", "sixth", "fifth", false)
	wantNothing(t, b, "key")

	for i, key := range keys {
		setIf(key, fmt.Sprint("value ", i), "", true)
	}
	for i, key := range keys {
		setIf(key, fmt.Sprint("again ", i), fmt.Sprint("value ", i), true)
		wantBytes(t, b, key, fmt.Sprint("again ", i))
	}
}

func bytesSwapOneWins(t testing.TB, s bytesSuite) {
	ctx, b := context.Background(), s.open(t)
	swap, ok := tier.AsBytesSwapper(b)
	if !ok {
		return
	}
	var head []byte
	for round := range 20 {
		var wins atomic.Int64
		var winner atomic.Value
		g := group{t: t}
		g.run(8, func(i int) {
			value := fmt.Appendf(nil, "%d of round %d", i, round)
			stored, err := swap.SetIf(ctx, "key", value, tier.Forever, head)
			if err != nil {
				t.Errorf("SetIf: %v", err)
			}
			if stored {
				wins.Add(1)
				winner.Store(value)
			}
		})
		g.wait()
		if wins.Load() != 1 {
			t.Fatalf("round %d: %d of 8 concurrent SetIf of one version won, want 1", round, wins.Load())
		}
		won := winner.Load().([]byte)
		wantBytes(t, b, "key", string(won))
		head = won[:min(len(won), tier.HeadSize)]
	}
}

func bytesSwapTTL(t testing.TB, s bytesSuite) {
	ctx, b := context.Background(), s.open(t)
	swap, ok := tier.AsBytesSwapper(b)
	if !ok {
		return
	}
	long := []time.Duration{400 * 24 * time.Hour, math.MaxInt64 - 1, tier.Forever}
	for _, ttl := range append(long, time.Millisecond) {
		mustSet(t, b, ttl.String(), "older", time.Hour)
		if stored, err := swap.SetIf(ctx, ttl.String(), []byte("value"), ttl, []byte("older")); !stored || err != nil {
			t.Errorf("SetIf with ttl %v = %v, %v, want true", ttl, stored, err)
		}
	}
	if !eventually(s.Sleep, rounding, func() bool { return mustGet(t, b, "1ms") == nil }) {
		t.Errorf("SetIf with ttl 1ms: still there after %v", rounding)
	}
	for _, ttl := range long {
		wantBytes(t, b, ttl.String(), "value")
	}
}

func bytesClear(t testing.TB, s bytesSuite) {
	ctx, b := context.Background(), s.open(t)
	c, ok := tier.AsClearer(b)
	if !ok {
		return
	}
	other := s.open(t)
	names := slices.Clone(keys)
	for i := range 1200 {
		names = append(names, fmt.Sprint("many ", i))
	}
	for _, key := range names {
		mustSet(t, b, key, "mine", tier.Forever)
	}
	for _, key := range keys {
		mustSet(t, other, key, "another's", tier.Forever)
	}
	for range 2 { // the second finds nothing
		if err := c.Clear(ctx); err != nil {
			t.Fatalf("Clear: %v", err)
		}
	}
	for _, key := range names {
		wantNothing(t, b, key)
	}
	for _, key := range keys {
		wantBytes(t, other, key, "another's")
	}
	mustSet(t, b, "key", "new", tier.Forever)
	wantBytes(t, b, "key", "new")
}

func bytesUsage(t testing.TB, s bytesSuite) {
	b := s.open(t)
	m, ok := tier.AsMeasurer(b)
	if !ok {
		return
	}
	checkUsage(t, m.Usage())
	for i := range 10 {
		mustSet(t, b, fmt.Sprint(i), "value", tier.Forever)
	}
	checkUsage(t, m.Usage())
}

// checkUsage checks what holds of any store's figures.
func checkUsage(t testing.TB, u tier.Usage) {
	t.Helper()
	for _, figure := range []int64{u.Entries, u.MaxEntries, u.Cost, u.MaxCost, u.Evictions, u.Rejections} {
		if figure < -1 {
			t.Errorf("%+v: want no figure below -1", u)
		}
	}
	if u.MaxEntries >= 0 && u.Entries > u.MaxEntries {
		t.Errorf("%+v: more entries than MaxEntries", u)
	}
}
