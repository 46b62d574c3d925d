package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terracecache/terrace/tier"
)

// StoreOptions are what [TestStoreWith] can be told.
type StoreOptions[V any] struct {
	// Values are what the entries hold: each must come back as it was. Those that are
	// easily taken for nothing are worth most: nil, zero, empty. None: the zero value.
	Values []V

	// TooLarge is a value that the store does not take. Nil: there is none.
	TooLarge *V

	// Equal compares values. Nil: reflect.DeepEqual.
	Equal func(a, b V) bool

	// Sleep lets time pass for the store. Nil: time.Sleep.
	Sleep func(time.Duration)

	// Virtual runs each check in a testing/synctest bubble, for stores that wait for
	// nothing outside the process.
	Virtual bool
}

// TestStore checks that a store keeps the promises of [tier.Store] and of the
// capabilities that it has. Each call of newStore makes a store that is empty,
// shares no key with another, and holds some hundred entries. The suite closes it.
// The values are those of [StoreOptions].
func TestStore[V any](t *testing.T, newStore func(t testing.TB) tier.Store[string, V], values ...V) {
	TestStoreWith(t, newStore, StoreOptions[V]{Values: values})
}

// TestStoreWith is [TestStore] with options.
func TestStoreWith[V any](t *testing.T, newStore func(t testing.TB) tier.Store[string, V], o StoreOptions[V]) {
	s := newStoreSuite(newStore, o)
	runChecks(t, o.Virtual, s, s.checks())
}

type storeSuite[V any] struct {
	newStore func(t testing.TB) tier.Store[string, V]
	StoreOptions[V]
}

func newStoreSuite[V any](newStore func(t testing.TB) tier.Store[string, V], o StoreOptions[V]) storeSuite[V] {
	if len(o.Values) == 0 {
		o.Values = make([]V, 1)
	}
	if o.Equal == nil {
		o.Equal = func(a, b V) bool { return reflect.DeepEqual(a, b) }
	}
	if o.Sleep == nil {
		o.Sleep = time.Sleep
	}
	return storeSuite[V]{newStore: newStore, StoreOptions: o}
}

func (storeSuite[V]) checks() []check[storeSuite[V]] {
	all := []check[storeSuite[V]]{
		{"nothing is nil", storeNothing[V]},
		{"values of every kind", storeValues[V]},
		{"all that an entry has", storeMeta[V]},
		{"keys of every kind", storeKeys[V]},
		{"the last write counts", storeLastWrite[V]},
		{"deleted stays deleted", storeDeleted[V]},
		{"ttl bounds the life", storeTTL[V]},
		{"ttl of zero and less", storeNoTTL[V]},
		{"a life ends", storeLifeEnds[V]},
		{"passing on does not lengthen a life", storePassedOn[V]},
		{"a value too large", storeTooLarge[V]},
		{"concurrent use", storeConcurrent[V]},
		{"a context that has ended", storeCancelled[V]},
		{"after Close", storeClosed[V]},
		{"Close during use", storeCloseDuringUse[V]},
		{"batch", storeBatch[V]},
		{"swap", storeSwap[V]},
		{"swap, one wins", storeSwapOneWins[V]},
		{"bury", storeBury[V]},
		{"clear", storeClear[V]},
		{"usage", storeUsage[V]},
	}
	for i := range all {
		all[i] = withPairs(all[i])
	}
	return append(all, check[storeSuite[V]]{"pairs", storePairs[V]})
}

func (s storeSuite[V]) open(t testing.TB) tier.Store[string, V] {
	t.Helper()
	st := s.newStore(t)
	if err := validate(st); err != nil {
		t.Fatalf("Validate: %v", err)
	}
	t.Cleanup(func() { closeStore(t, st) })
	return st
}

// life is longer than a check takes.
const life = time.Hour

// entry returns an entry that says by its validator whose it is: the suite cannot
// tell values of V apart.
func (s storeSuite[V]) entry(key string, n int64) *tier.Entry[V] {
	now := tier.Now()
	return tier.NewEntry(s.Values[uint64(n)%uint64(len(s.Values))], tier.Meta{
		LoadedAt:    now,
		FreshUntil:  now.Add(life / 2),
		UsableUntil: now.Add(life),
		LoadTime:    time.Duration(n) + 1,
		Validator:   strconv.FormatInt(n, 10) + " " + key,
	})
}

// identity reads back what entry wrote.
func identity[V any](t testing.TB, e *tier.Entry[V]) (key string, n int64) {
	t.Helper()
	if _, err := fmt.Sscanf(e.Validator(), "%d ", &n); err != nil {
		t.Fatalf("an entry came back with the validator %s, which nobody set", brief(e.Validator()))
	}
	return e.Validator()[len(strconv.FormatInt(n, 10))+1:], n
}

func (s storeSuite[V]) set(t testing.TB, st tier.Store[string, V], key string, n int64) {
	t.Helper()
	if err := st.Set(context.Background(), key, s.entry(key, n), tier.Forever); err != nil {
		t.Fatalf("Set(%s): %v", brief(key), err)
	}
}

func (s storeSuite[V]) get(t testing.TB, st tier.Store[string, V], key string) *tier.Entry[V] {
	t.Helper()
	e, err := st.Get(context.Background(), key)
	if err != nil {
		t.Fatalf("Get(%s): %v", brief(key), err)
	}
	return e
}

func (s storeSuite[V]) delete(t testing.TB, st tier.Store[string, V], key string) {
	t.Helper()
	if err := st.Delete(context.Background(), key); err != nil {
		t.Fatalf("Delete(%s): %v", brief(key), err)
	}
}

// kept sets the entry and reads it back. A store may drop anything, but one that
// does so time and again keeps nothing.
func (s storeSuite[V]) kept(t testing.TB, st tier.Store[string, V], key string, e *tier.Entry[V], ttl time.Duration) *tier.Entry[V] {
	t.Helper()
	for range 20 {
		if err := st.Set(context.Background(), key, e, ttl); err != nil {
			t.Fatalf("Set(%s) with ttl %v: %v", brief(key), ttl, err)
		}
		if got := s.get(t, st, key); got != nil {
			return got
		}
	}
	t.Fatalf("Get(%s) finds nothing right after each of 20 Sets with ttl %v", brief(key), ttl)
	return nil
}

// want fails the test unless the key holds write n, or nothing.
func (s storeSuite[V]) want(t testing.TB, st tier.Store[string, V], key string, n int64) {
	t.Helper()
	s.is(t, s.get(t, st, key), key, n)
}

// is fails the test unless the entry is write n of the key, or nil.
func (s storeSuite[V]) is(t testing.TB, e *tier.Entry[V], key string, n int64) {
	t.Helper()
	if e == nil {
		return
	}
	gotKey, got := identity(t, e)
	if gotKey != key {
		t.Errorf("key %s gives the entry of key %s", brief(key), brief(gotKey))
	} else if got != n {
		t.Errorf("key %s gives write %d, want write %d or nothing", brief(key), got, n)
	}
	if want := s.Values[uint64(n)%uint64(len(s.Values))]; !s.Equal(e.Value(), want) {
		t.Errorf("key %s gives the value %#v, want %#v", brief(key), e.Value(), want)
	}
}

func (s storeSuite[V]) wantNothing(t testing.TB, st tier.Store[string, V], key string) {
	t.Helper()
	if e := s.get(t, st, key); e != nil {
		t.Errorf("Get(%s) gives an entry (validator %s), want nil", brief(key), brief(e.Validator()))
	}
}

func storeNothing[V any](t testing.TB, s storeSuite[V]) {
	st := s.open(t)
	s.wantNothing(t, st, "key")
	s.delete(t, st, "key")
	s.kept(t, st, "key", s.entry("key", 1), tier.Forever)
	s.delete(t, st, "key")
	s.wantNothing(t, st, "key")
	s.delete(t, st, "key")
}

// storeValues is C74: nil, zero and empty are values.
func storeValues[V any](t testing.TB, s storeSuite[V]) {
	st := s.open(t)
	for i, value := range s.Values {
		key := fmt.Sprint("value ", i)
		got := s.kept(t, st, key, s.entry(key, int64(i)), tier.Forever)
		if !s.Equal(got.Value(), value) {
			t.Errorf("value %d: got %#v, want %#v", i, got.Value(), value)
		}
		if got.Absent() {
			t.Errorf("value %d, %#v, came back as absent", i, value)
		}
	}
}

// near is how far an instant may move that crosses a process boundary and back.
const near = 5 * time.Millisecond

func isNear(a, b tier.Instant) bool {
	d := a.Sub(b)
	return a == b || d > -near && d < near
}

func storeMeta[V any](t testing.TB, s storeSuite[V]) {
	st := s.open(t)
	var none V
	now := tier.Now()
	for name, m := range map[string]tier.Meta{
		"plain":    {LoadedAt: now, FreshUntil: now.Add(time.Minute), UsableUntil: now.Add(life)},
		"old":      {LoadedAt: now.Add(-time.Hour), FreshUntil: now.Add(-time.Minute), UsableUntil: now.Add(life), LoadTime: 1234567 * time.Nanosecond},
		"endless":  {LoadedAt: now, FreshUntil: tier.Never, UsableUntil: tier.Never, LoadTime: time.Hour},
		"absent":   {LoadedAt: now, FreshUntil: now.Add(time.Minute), UsableUntil: now.Add(life), Absent: true},
		"tagged":   {LoadedAt: now, FreshUntil: now.Add(time.Minute), UsableUntil: now.Add(life), Tags: []string{"a", "", "b c", "\xff"}, Validator: "\"etag\""},
		"all":      {LoadedAt: now, FreshUntil: now.Add(time.Minute), UsableUntil: now.Add(life), LoadTime: 1, Absent: true, Tags: []string{"a"}, Validator: "v"},
		"zero":     {LoadedAt: now, FreshUntil: now, UsableUntil: now.Add(life)},
		"half":     {LoadedAt: now, FreshUntil: now.Add(time.Minute), UsableUntil: tier.Never},
		"sub-tick": {LoadedAt: now, FreshUntil: now.Add(999_999_999), UsableUntil: now.Add(life + 1), LoadTime: 999},
	} {
		value := s.Values[0]
		if m.Absent {
			value = none
		}
		got := s.kept(t, st, name, tier.NewEntry(value, m), tier.Forever).Meta()
		if !isNear(got.LoadedAt, m.LoadedAt) || !isNear(got.FreshUntil, m.FreshUntil) || !isNear(got.UsableUntil, m.UsableUntil) {
			t.Errorf("%s: got %+v, want instants as in %+v", name, got, m)
		}
		if got.LoadTime != m.LoadTime {
			t.Errorf("%s: got LoadTime %v, want %v", name, got.LoadTime, m.LoadTime)
		}
		if got.Absent != m.Absent || got.Validator != m.Validator || !slices.Equal(got.Tags, m.Tags) {
			t.Errorf("%s: got %+v, want %+v", name, got, m)
		}
	}
}

func storeKeys[V any](t testing.TB, s storeSuite[V]) {
	st := s.open(t)
	for i, key := range keys {
		s.kept(t, st, key, s.entry(key, int64(i)), tier.Forever)
	}
	for i, key := range keys {
		s.want(t, st, key, int64(i))
	}
	for i, key := range keys {
		s.delete(t, st, key)
		s.wantNothing(t, st, key)
		if i+1 < len(keys) {
			s.want(t, st, keys[i+1], int64(i+1))
		}
	}
}

// storeLastWrite is C63: also a store that writes later, drops or rejects never
// gives an older entry.
func storeLastWrite[V any](t testing.TB, s storeSuite[V]) {
	st := s.open(t)
	for n := range int64(300) {
		key := fmt.Sprint("key ", n%3)
		s.set(t, st, key, n)
		s.want(t, st, key, n)
		if n%7 == 0 {
			s.set(t, st, key, n+1000)
			s.want(t, st, key, n+1000)
		}
	}
	// Old writes do not come up later.
	for range 20 {
		s.Sleep(time.Millisecond)
		for n := int64(297); n < 300; n++ {
			s.want(t, st, fmt.Sprint("key ", n%3), n)
		}
	}
}

func storeDeleted[V any](t testing.TB, s storeSuite[V]) {
	st := s.open(t)
	const n = 100
	for i := range int64(n) {
		key := fmt.Sprint("key ", i)
		s.set(t, st, key, i)
		s.delete(t, st, key)
		s.wantNothing(t, st, key)
	}
	for range 10 {
		s.Sleep(time.Millisecond)
		for i := range n {
			s.wantNothing(t, st, fmt.Sprint("key ", i))
		}
	}
}

func storeTTL[V any](t testing.TB, s storeSuite[V]) {
	st := s.open(t)
	ttls := []time.Duration{
		time.Second, 1500 * time.Millisecond, time.Minute, life - time.Second, life, life + time.Second,
		30*24*time.Hour + time.Second, 400 * 24 * time.Hour, math.MaxInt64 - 1, tier.Forever,
	}
	for _, ttl := range ttls {
		given := s.entry("key", 1)
		before := given.Meta()
		got := s.kept(t, st, "key", given, ttl)
		want := min(given.UsableUntil(), tier.Now().Add(ttl))
		if got.UsableUntil() > want.Add(near) {
			t.Errorf("ttl %v: usable %v longer than it may be", ttl, got.UsableUntil().Sub(want))
		}
		if ttl > life && !isNear(got.UsableUntil(), given.UsableUntil()) {
			t.Errorf("ttl %v: usable %v shorter than its own life", ttl, given.UsableUntil().Sub(got.UsableUntil()))
		}
		if !isNear(got.FreshUntil(), given.FreshUntil()) {
			t.Errorf("ttl %v: FreshUntil moved by %v", ttl, got.FreshUntil().Sub(given.FreshUntil()))
		}
		if after := given.Meta(); !reflect.DeepEqual(before, after) {
			t.Errorf("ttl %v: the entry given was changed from %+v to %+v", ttl, before, after)
		}

		// One that has no end of its own gets that of the ttl (C19).
		now := tier.Now()
		endless := tier.NewEntry(s.Values[0], tier.Meta{LoadedAt: now, FreshUntil: tier.Never, UsableUntil: tier.Never, Validator: "1 key"})
		got = s.kept(t, st, "key", endless, ttl)
		if got.UsableUntil() > tier.Now().Add(ttl).Add(near) {
			t.Errorf("ttl %v: an endless entry is usable %v too long", ttl, got.UsableUntil().Sub(tier.Now().Add(ttl)))
		}
		if ttl == tier.Forever && got.UsableUntil() != tier.Never {
			t.Errorf("ttl Forever: an endless entry is usable for %v", got.UsableUntil().Sub(tier.Now()))
		}
	}
}

func storeNoTTL[V any](t testing.TB, s storeSuite[V]) {
	st := s.open(t)
	for _, ttl := range []time.Duration{0, -1, -time.Second, -400 * 24 * time.Hour, math.MinInt64} {
		s.set(t, st, "key", 1)
		if err := st.Set(context.Background(), "key", s.entry("key", 2), ttl); err != nil {
			t.Errorf("Set with ttl %v: %v", ttl, err)
		}
		s.wantNothing(t, st, "key")
	}
}

// usable reports whether a reader may use the entry.
func usable[V any](e *tier.Entry[V]) bool { return e != nil && e.UsableUntil() > tier.Now() }

func storeLifeEnds[V any](t testing.TB, s storeSuite[V]) {
	st := s.open(t)
	for _, ttl := range []time.Duration{1, 999 * time.Microsecond, 50 * time.Millisecond} {
		s.set(t, st, "key", 1)
		if err := st.Set(context.Background(), "key", s.entry("key", 2), ttl); err != nil {
			t.Errorf("Set with ttl %v: %v", ttl, err)
		}
		s.want(t, st, "key", 2)
		s.Sleep(ttl + near)
		if e := s.get(t, st, "key"); usable(e) {
			t.Errorf("ttl %v: usable for another %v after it", ttl, e.UsableUntil().Sub(tier.Now()))
		}

		now := tier.Now()
		own := tier.NewEntry(s.Values[0], tier.Meta{LoadedAt: now, FreshUntil: now, UsableUntil: now.Add(ttl)})
		if err := st.Set(context.Background(), "key", own, tier.Forever); err != nil {
			t.Errorf("Set of an entry with a life of %v: %v", ttl, err)
		}
		s.Sleep(ttl + near)
		if e := s.get(t, st, "key"); usable(e) {
			t.Errorf("a life of %v: usable for another %v after it", ttl, e.UsableUntil().Sub(tier.Now()))
		}
	}
	// One that is dead on arrival replaces what was there.
	now := tier.Now()
	s.set(t, st, "key", 1)
	dead := tier.NewEntry(s.Values[0], tier.Meta{LoadedAt: now.Add(-time.Hour), FreshUntil: now.Add(-time.Minute), UsableUntil: now.Add(-time.Second)})
	if err := st.Set(context.Background(), "key", dead, time.Minute); err != nil {
		t.Errorf("Set of an entry whose life is over: %v", err)
	}
	if e := s.get(t, st, "key"); usable(e) {
		t.Errorf("after the Set of an entry whose life was over: usable for %v", e.UsableUntil().Sub(tier.Now()))
	}
}

// storePassedOn is C30: an entry that goes from store to store keeps its end.
func storePassedOn[V any](t testing.TB, s storeSuite[V]) {
	a, b := s.open(t), s.open(t)
	e := s.entry("key", 1)
	end := e.UsableUntil()
	for range 10 {
		for _, st := range []tier.Store[string, V]{a, b} {
			e = s.kept(t, st, "key", e, tier.Forever)
			if e.UsableUntil() > end.Add(near) {
				t.Fatalf("usable %v longer than when it was made", e.UsableUntil().Sub(end))
			}
			s.Sleep(time.Millisecond)
		}
	}
	e = s.kept(t, a, "key", e, time.Minute)
	end = tier.Now().Add(time.Minute)
	if e = s.kept(t, b, "key", e, tier.Forever); e.UsableUntil() > end.Add(near) {
		t.Errorf("usable %v longer than the ttl that it had in another store", e.UsableUntil().Sub(end))
	}
}

func storeTooLarge[V any](t testing.TB, s storeSuite[V]) {
	if s.TooLarge == nil {
		return
	}
	ctx, st := context.Background(), s.open(t)
	now := tier.Now()
	large := tier.NewEntry(*s.TooLarge, tier.Meta{LoadedAt: now, FreshUntil: now.Add(life), UsableUntil: now.Add(life)})
	s.set(t, st, "key", 1)
	if err := st.Set(ctx, "key", large, tier.Forever); err != nil && !errors.Is(err, tier.ErrTooLarge) {
		t.Errorf("Set of a value too large: got error %v, want nil or tier.ErrTooLarge", err)
	}
	s.wantNothing(t, st, "key")
	if batch, ok := tier.AsBatcher(st); ok {
		s.set(t, st, "large", 1)
		err := batch.SetMany(ctx, []string{"small", "large", "other"}, []*tier.Entry[V]{s.entry("small", 2), large, s.entry("other", 3)},
			[]time.Duration{tier.Forever, tier.Forever, tier.Forever})
		if err != nil && !errors.Is(err, tier.ErrTooLarge) {
			t.Errorf("SetMany with a value too large: got error %v, want nil or tier.ErrTooLarge", err)
		}
		s.wantNothing(t, st, "large")
		s.want(t, st, "small", 2)
		s.want(t, st, "other", 3)
	}
	s.kept(t, st, "key", s.entry("key", 4), tier.Forever)
}

// storeConcurrent has one writer for each key and several readers, who must never
// see less than what was written when they began, nor another key's entry.
func storeConcurrent[V any](t testing.TB, s storeSuite[V]) {
	ctx, st := context.Background(), s.open(t)
	const writers, rounds = 4, 200
	var written [writers]atomic.Int64 // newest write whose Set or Delete has returned
	name := func(i int) string { return fmt.Sprint("key ", i) }
	g := group{t: t}
	g.run(writers, func(i int) {
		for n := int64(1); n <= rounds; n++ {
			err := st.Set(ctx, name(i), s.entry(name(i), n), tier.Forever)
			if n%10 == 5 && err == nil {
				n++
				err = st.Delete(ctx, name(i))
			}
			if err != nil {
				t.Errorf("write to %q: %v", name(i), err)
				return
			}
			written[i].Store(n)
		}
	})
	g.run(2*writers, func(r int) {
		for n := range rounds {
			i := (r + n) % writers
			atLeast := written[i].Load()
			e, err := st.Get(ctx, name(i))
			if err != nil {
				t.Errorf("Get: %v", err)
				return
			}
			if e == nil {
				continue
			}
			if key, got := identity(t, e); key != name(i) {
				t.Errorf("key %q gives the entry of key %q", name(i), key)
			} else if got < atLeast {
				t.Errorf("key %q gives write %d after write %d had returned", name(i), got, atLeast)
			} else if want := s.Values[uint64(got)%uint64(len(s.Values))]; !s.Equal(e.Value(), want) {
				t.Errorf("key %q gives the value %#v with write %d, want %#v", name(i), e.Value(), got, want)
			}
		}
	})
	g.wait()
}

// calls lists each method that st has, to be called for its error.
func (s storeSuite[V]) calls(st tier.Store[string, V]) map[string]func(ctx context.Context, key string) error {
	m := map[string]func(context.Context, string) error{
		"Get":    func(ctx context.Context, key string) error { _, err := st.Get(ctx, key); return err },
		"Set":    func(ctx context.Context, key string) error { return st.Set(ctx, key, s.entry(key, 1), tier.Forever) },
		"Delete": func(ctx context.Context, key string) error { return st.Delete(ctx, key) },
	}
	if batch, ok := tier.AsBatcher(st); ok {
		m["GetMany"] = func(ctx context.Context, key string) error {
			entries, err := batch.GetMany(ctx, []string{key, key})
			if len(entries) != 2 {
				return fmt.Errorf("GetMany of 2 keys gives %d entries, and error %w", len(entries), err)
			}
			return err
		}
		m["SetMany"] = func(ctx context.Context, key string) error {
			return batch.SetMany(ctx, []string{key}, []*tier.Entry[V]{s.entry(key, 1)}, []time.Duration{tier.Forever})
		}
		m["DeleteMany"] = func(ctx context.Context, key string) error { return batch.DeleteMany(ctx, []string{key}) }
	}
	if swap, ok := tier.AsSwapper(st); ok {
		m["GetVersion"] = func(ctx context.Context, key string) error { _, _, err := swap.GetVersion(ctx, key); return err }
		m["SetIf"] = func(ctx context.Context, key string) error {
			_, err := swap.SetIf(ctx, key, s.entry(key, 1), tier.Forever, tier.Version{})
			return err
		}
		m["Bury"] = func(ctx context.Context, key string) error { return swap.Bury(ctx, key, time.Second) }
	}
	if c, ok := tier.AsClearer(st); ok {
		m["Clear"] = func(ctx context.Context, _ string) error { return c.Clear(ctx) }
	}
	return m
}

func storeCancelled[V any](t testing.TB, s storeSuite[V]) {
	st := s.open(t)
	local := tier.IsLocal(st)
	for name, call := range s.calls(st) {
		returnsSoon(t, name, func() {
			if err := call(cancelled(), "key"); err != nil && local {
				t.Errorf("%s of a local store fails with a cancelled context: %v", name, err)
			}
		})
	}
	// A write that says that it was made must have been.
	s.set(t, st, "key", 1)
	if err := st.Set(cancelled(), "key", s.entry("key", 2), tier.Forever); err == nil {
		s.want(t, st, "key", 2)
	}
	if err := st.Delete(cancelled(), "key"); err == nil {
		s.wantNothing(t, st, "key")
	}
	s.kept(t, st, "key", s.entry("key", 3), tier.Forever)
}

func storeClosed[V any](t testing.TB, s storeSuite[V]) {
	st := s.open(t)
	s.set(t, st, "key", 1)
	closeStore(t, st)
	closeStore(t, st)
	for name, call := range s.calls(st) {
		if err := call(context.Background(), "key"); !errors.Is(err, tier.ErrClosed) {
			t.Errorf("%s after Close: got error %v, want tier.ErrClosed", name, err)
		}
	}
	if m, ok := tier.AsMeasurer(st); ok {
		checkUsage(t, m.Usage())
	}
}

// storeCloseDuringUse is C72.
func storeCloseDuringUse[V any](t testing.TB, s storeSuite[V]) {
	for range 5 {
		st := s.open(t)
		ctx := context.Background()
		started := make(chan struct{}, 100)
		var closed atomic.Bool
		g := group{t: t}
		g.run(10, func(i int) {
			for n := 0; ; n++ {
				was := closed.Load()
				for name, call := range s.calls(st) {
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
			closeStore(t, st)
			closed.Store(true)
		})
		g.wait()
	}
}

func storeBatch[V any](t testing.TB, s storeSuite[V]) {
	ctx, st := context.Background(), s.open(t)
	batch, ok := tier.AsBatcher(st)
	if !ok {
		return
	}
	for _, none := range [][]string{nil, {}} {
		if entries, err := batch.GetMany(ctx, none); len(entries) != 0 || err != nil {
			t.Errorf("GetMany of no keys = %v, %v", entries, err)
		}
		if err := batch.SetMany(ctx, none, nil, nil); err != nil {
			t.Errorf("SetMany of no keys: %v", err)
		}
		if err := batch.DeleteMany(ctx, none); err != nil {
			t.Errorf("DeleteMany of no keys: %v", err)
		}
	}
	names := append(slices.Clone(keys), "twice", "twice", "zero", "negative")
	entries, ttls := make([]*tier.Entry[V], len(names)), make([]time.Duration, len(names))
	for i, key := range names {
		entries[i], ttls[i] = s.entry(key, int64(i)), tier.Forever
	}
	ttls[len(ttls)-2], ttls[len(ttls)-1] = 0, -1
	s.set(t, st, "zero", 1000)
	s.set(t, st, "negative", 1000)
	if err := batch.SetMany(ctx, names, entries, ttls); err != nil {
		t.Fatalf("SetMany: %v", err)
	}
	if e := s.get(t, st, "twice"); e != nil {
		s.is(t, e, "twice", int64(len(keys)+1))
	}

	// In another order, with keys that repeat and keys that are missing.
	ask := []string{"missing", "twice", "zero", "twice", "negative", "missing"}
	ask = append(ask, keys...)
	got, err := batch.GetMany(ctx, ask)
	if err != nil || len(got) != len(ask) {
		t.Fatalf("GetMany of %d keys: %d entries, %v", len(ask), len(got), err)
	}
	found := 0
	for i, e := range got {
		switch key := ask[i]; key {
		case "missing", "zero", "negative":
			if e != nil {
				t.Errorf("GetMany: entry %d, of key %q, is there", i, key)
			}
		case "twice":
			s.is(t, e, key, int64(len(keys)+1))
		default:
			s.is(t, e, key, int64(slices.Index(keys, key)))
		}
		if e != nil {
			found++
		}
	}
	if found == 0 {
		t.Errorf("GetMany finds nothing right after SetMany of %d", len(names))
	}

	if err := batch.DeleteMany(ctx, append(ask, "missing")); err != nil {
		t.Fatalf("DeleteMany: %v", err)
	}
	for _, key := range ask {
		s.wantNothing(t, st, key)
	}
}

func storeSwap[V any](t testing.TB, s storeSuite[V]) {
	ctx, st := context.Background(), s.open(t)
	swap, ok := tier.AsSwapper(st)
	if !ok {
		return
	}
	version := func() tier.Version {
		t.Helper()
		_, v, err := swap.GetVersion(ctx, "key")
		if err != nil {
			t.Fatalf("GetVersion: %v", err)
		}
		return v
	}
	setIf := func(n int64, v tier.Version, want bool) {
		t.Helper()
		stored, err := swap.SetIf(ctx, "key", s.entry("key", n), tier.Forever, v)
		if err != nil || stored != want {
			t.Errorf("SetIf of write %d = %v, %v, want %v", n, stored, err, want)
		}
	}
	nothing := version()
	if nothing != (tier.Version{}) {
		t.Errorf("the version of nothing is not zero")
	}
	setIf(1, nothing, true)
	s.want(t, st, "key", 1)
	one := version()
	setIf(2, nothing, false)
	s.want(t, st, "key", 1)
	if version() != one {
		t.Error("the version changed though nothing was written")
	}
	setIf(3, one, true)
	s.want(t, st, "key", 3)
	setIf(4, one, false)
	s.want(t, st, "key", 3)

	// A Set between, even of the same entry, changes the version, and so does a
	// Delete.
	same := s.entry("key", 5)
	s.kept(t, st, "key", same, tier.Forever)
	before := version()
	s.kept(t, st, "key", same, tier.Forever)
	setIf(6, before, false)
	s.want(t, st, "key", 5)
	before = version()
	s.delete(t, st, "key")
	setIf(7, before, false)
	s.wantNothing(t, st, "key")

	// With no time to live nothing is stored, and nothing older is left.
	s.kept(t, st, "key", same, tier.Forever)
	if _, err := swap.SetIf(ctx, "key", s.entry("key", 8), 0, version()); err != nil {
		t.Errorf("SetIf with ttl 0: %v", err)
	}
	s.wantNothing(t, st, "key")
}

func storeSwapOneWins[V any](t testing.TB, s storeSuite[V]) {
	ctx, st := context.Background(), s.open(t)
	swap, ok := tier.AsSwapper(st)
	if !ok {
		return
	}
	for round := range int64(20) {
		_, v, err := swap.GetVersion(ctx, "key")
		if err != nil {
			t.Fatalf("GetVersion: %v", err)
		}
		var wins, winner atomic.Int64
		g := group{t: t}
		g.run(8, func(i int) {
			n := round*8 + int64(i)
			stored, err := swap.SetIf(ctx, "key", s.entry("key", n), tier.Forever, v)
			if err != nil {
				t.Errorf("SetIf: %v", err)
			}
			if stored {
				wins.Add(1)
				winner.Store(n)
			}
		})
		g.wait()
		if wins.Load() != 1 {
			t.Fatalf("round %d: %d of 8 concurrent SetIf of one version won, want 1", round, wins.Load())
		}
		s.want(t, st, "key", winner.Load())
	}
}

func storeBury[V any](t testing.TB, s storeSuite[V]) {
	ctx, st := context.Background(), s.open(t)
	swap, ok := tier.AsSwapper(st)
	if !ok {
		return
	}
	for _, held := range []bool{false, true} {
		if held {
			s.kept(t, st, "key", s.entry("key", 1), tier.Forever)
		} else {
			s.delete(t, st, "key")
		}
		_, before, err := swap.GetVersion(ctx, "key")
		if err != nil {
			t.Fatalf("GetVersion: %v", err)
		}
		if err := swap.Bury(ctx, "key", time.Minute); err != nil {
			t.Fatalf("Bury: %v", err)
		}
		s.wantNothing(t, st, "key")
		if stored, err := swap.SetIf(ctx, "key", s.entry("key", 2), tier.Forever, before); stored || err != nil {
			t.Errorf("SetIf with a version from before Bury (held %v) = %v, %v, want false", held, stored, err)
		}
		s.wantNothing(t, st, "key")
		e, buried, err := swap.GetVersion(ctx, "key")
		if e != nil || err != nil {
			t.Errorf("GetVersion of a buried key = %v, %v, want nothing", e, err)
		}
		if stored, err := swap.SetIf(ctx, "key", s.entry("key", 3), tier.Forever, buried); !stored || err != nil {
			t.Errorf("SetIf with the tombstone's version = %v, %v, want true", stored, err)
		}
		s.want(t, st, "key", 3)
		if done, err := swap.BuryIf(ctx, "key", time.Minute, buried); done || err != nil {
			t.Errorf("BuryIf with a version from before = %v, %v, want false", done, err)
		}
		s.want(t, st, "key", 3)
		_, now, err := swap.GetVersion(ctx, "key")
		if err != nil {
			t.Fatalf("GetVersion: %v", err)
		}
		if done, err := swap.BuryIf(ctx, "key", time.Minute, now); !done || err != nil {
			t.Errorf("BuryIf with the version that is there = %v, %v, want true", done, err)
		}
		s.wantNothing(t, st, "key")
		if stored, err := swap.SetIf(ctx, "key", s.entry("key", 2), tier.Forever, now); stored || err != nil {
			t.Errorf("SetIf with a version from before BuryIf = %v, %v, want false", stored, err)
		}
		if err := swap.Bury(ctx, "key", time.Minute); err != nil {
			t.Fatalf("Bury: %v", err)
		}
		s.kept(t, st, "key", s.entry("key", 4), tier.Forever) // a plain Set replaces it
		if batch, ok := tier.AsBatcher(st); ok {
			_ = swap.Bury(ctx, "key", time.Minute)
			if entries, err := batch.GetMany(ctx, []string{"key"}); err != nil || entries[0] != nil {
				t.Errorf("GetMany of a buried key = %v, %v, want nothing", entries, err)
			}
		}
	}
	// A tombstone does not stay.
	if err := swap.Bury(ctx, "key", time.Millisecond); err != nil {
		t.Fatalf("Bury: %v", err)
	}
	if !eventually(s.Sleep, rounding, func() bool {
		_, v, err := swap.GetVersion(ctx, "key")
		return err == nil && v == (tier.Version{})
	}) {
		t.Errorf("a tombstone held for 1ms is there after %v", rounding)
	}
}

func storeClear[V any](t testing.TB, s storeSuite[V]) {
	ctx, st := context.Background(), s.open(t)
	c, ok := tier.AsClearer(st)
	if !ok {
		return
	}
	other := s.open(t)
	s.kept(t, other, "key", s.entry("key", 7), tier.Forever)
	for i, key := range keys {
		s.set(t, st, key, int64(i))
	}
	for range 2 { // the second finds nothing
		if err := c.Clear(ctx); err != nil {
			t.Fatalf("Clear: %v", err)
		}
	}
	for range 5 {
		for _, key := range keys {
			s.wantNothing(t, st, key)
		}
		s.Sleep(time.Millisecond)
	}
	if s.get(t, other, "key") == nil {
		t.Error("Clear removed another store's entry")
	}
	s.kept(t, st, "key", s.entry("key", 1), tier.Forever)
}

func storeUsage[V any](t testing.TB, s storeSuite[V]) {
	st := s.open(t)
	m, ok := tier.AsMeasurer(st)
	if !ok {
		return
	}
	checkUsage(t, m.Usage())
	for i := range int64(10) {
		s.set(t, st, fmt.Sprint(i), i)
	}
	checkUsage(t, m.Usage())
}
