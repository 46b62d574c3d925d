package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

// recorder is a testing.TB that notes failures instead of reporting them.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	messages []string
	cleanups []func()
}

func (r *recorder) note(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, message)
}

func (r *recorder) Helper()                           {}
func (r *recorder) Errorf(format string, args ...any) { r.note(fmt.Sprintf(format, args...)) }
func (r *recorder) Error(args ...any)                 { r.note(fmt.Sprint(args...)) }
func (r *recorder) Cleanup(f func())                  { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.note(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// failures runs the checks and returns what each that failed had to say.
func failures[S any](t *testing.T, s S, checks []check[S]) map[string][]string {
	failed := make(map[string][]string)
	for _, c := range checks {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{TB: t}
			do := func(f func()) {
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() {
						if p := recover(); p != nil {
							r.note(fmt.Sprint("panic: ", p))
						}
					}()
					f()
				}()
				<-done
			}
			do(func() { c.run(r, s) })
			for _, f := range r.cleanups {
				do(f)
			}
			if len(r.messages) > 0 {
				failed[c.name] = r.messages
			}
		})
	}
	return failed
}

// wantFailure fails the test unless the named check fails.
func wantFailure[S any](t *testing.T, s S, checks []check[S], name string) {
	t.Helper()
	i := slices.IndexFunc(checks, func(c check[S]) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("there is no check %q", name)
	}
	failed := failures(t, s, checks[i:i+1])
	if len(failed) == 0 {
		t.Errorf("the check %q passes", name)
	}
}

// broken is a MapBytes with methods replaced.
type broken struct {
	*MapBytes
	get        func(ctx context.Context, key string) ([]byte, error)
	set        func(ctx context.Context, key string, value []byte, ttl time.Duration) error
	delete     func(ctx context.Context, key string) error
	getMany    func(ctx context.Context, keys []string) ([][]byte, error)
	setMany    func(ctx context.Context, keys []string, values [][]byte, ttls []time.Duration) error
	deleteMany func(ctx context.Context, keys []string) error
	setIf      func(ctx context.Context, key string, value []byte, ttl time.Duration, head []byte) (bool, error)
	clear      func(ctx context.Context) error
	usage      func() tier.Usage
	close      func() error
}

func newBroken(m *MapBytes) *broken {
	return &broken{
		MapBytes: m, get: m.Get, set: m.Set, delete: m.Delete, getMany: m.GetMany, setMany: m.SetMany,
		deleteMany: m.DeleteMany, setIf: m.SetIf, clear: m.Clear, usage: m.Usage, close: m.Close,
	}
}

func (b *broken) Get(ctx context.Context, key string) ([]byte, error) { return b.get(ctx, key) }
func (b *broken) Set(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return b.set(ctx, key, value, ttl)
}
func (b *broken) Delete(ctx context.Context, key string) error { return b.delete(ctx, key) }
func (b *broken) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	return b.getMany(ctx, keys)
}
func (b *broken) SetMany(ctx context.Context, keys []string, values [][]byte, ttls []time.Duration) error {
	return b.setMany(ctx, keys, values, ttls)
}
func (b *broken) DeleteMany(ctx context.Context, keys []string) error { return b.deleteMany(ctx, keys) }
func (b *broken) SetIf(ctx context.Context, key string, value []byte, ttl time.Duration, head []byte) (bool, error) {
	return b.setIf(ctx, key, value, ttl, head)
}
func (b *broken) Clear(ctx context.Context) error { return b.clear(ctx) }
func (b *broken) Usage() tier.Usage               { return b.usage() }
func (b *broken) Close() error                    { return b.close() }

// renames makes the store change keys.
func (b *broken) renames(rename func(string) string) {
	m := b.MapBytes
	b.get = func(ctx context.Context, key string) ([]byte, error) { return m.Get(ctx, rename(key)) }
	b.set = func(ctx context.Context, key string, v []byte, ttl time.Duration) error {
		return m.Set(ctx, rename(key), v, ttl)
	}
	b.delete = func(ctx context.Context, key string) error { return m.Delete(ctx, rename(key)) }
}

// livesFor makes the store change the times to live.
func (b *broken) livesFor(change func(time.Duration) time.Duration) {
	b.set = func(ctx context.Context, key string, v []byte, ttl time.Duration) error {
		return b.MapBytes.Set(ctx, key, v, change(ttl))
	}
}

// Each store is broken in one way, which the check named must find.
func TestBytesSuiteFindsFaults(t *testing.T) {
	const tooLarge = 1000
	shared := NewMapBytes() // the server of stores that do not leave each other alone
	for _, c := range []struct {
		fault, check string
		breaks       func(b *broken)
	}{
		{"an empty value is nil", "values of every kind", func(b *broken) {
			b.get = func(ctx context.Context, key string) ([]byte, error) {
				v, err := b.MapBytes.Get(ctx, key)
				if len(v) == 0 {
					return nil, err
				}
				return v, err
			}
		}},
		{"nothing is empty", "nothing is nil", func(b *broken) {
			b.get = func(ctx context.Context, key string) ([]byte, error) {
				v, err := b.MapBytes.Get(ctx, key)
				return append([]byte{}, v...), err
			}
		}},
		{"a missing key is an error", "nothing is nil", func(b *broken) {
			b.get = func(ctx context.Context, key string) ([]byte, error) {
				v, err := b.MapBytes.Get(ctx, key)
				if v == nil && err == nil {
					err = errors.New("not found")
				}
				return v, err
			}
		}},
		{"values are trimmed", "values of every kind", func(b *broken) {
			b.set = func(ctx context.Context, key string, v []byte, ttl time.Duration) error {
				return b.MapBytes.Set(ctx, key, bytes.TrimSpace(v), ttl)
			}
		}},
		{"Delete does nothing", "nothing is nil", func(b *broken) {
			b.delete = func(context.Context, string) error { return nil }
		}},
		{"keys lose spaces", "keys of every kind", func(b *broken) { b.renames(strings.TrimSpace) }},
		{"keys lose case", "keys of every kind", func(b *broken) { b.renames(strings.ToLower) }},
		{"keys lose what is not UTF-8", "keys of every kind", func(b *broken) {
			b.renames(func(s string) string { return strings.ToValidUTF8(s, "\ufffd") })
		}},
		{"keys lose their end", "keys of every kind", func(b *broken) { b.renames(func(s string) string { return s[:min(len(s), 250)] }) }},
		{"the first write stays", "the last write counts", func(b *broken) {
			b.set = func(ctx context.Context, key string, v []byte, ttl time.Duration) error {
				_, err := b.MapBytes.SetIf(ctx, key, v, ttl, nil)
				return err
			}
		}},
		{"the slice given is kept", "slices are not shared", func(b *broken) {
			b.set = func(_ context.Context, key string, v []byte, ttl time.Duration) error {
				b.server.mu.Lock()
				defer b.server.mu.Unlock()
				b.server.values[key] = mapValue{bytes: v, until: tier.Now().Add(ttl)}
				return nil
			}
		}},
		{"the slice returned is shared", "slices are not shared", func(b *broken) {
			b.get = func(_ context.Context, key string) ([]byte, error) {
				b.server.mu.Lock()
				defer b.server.mu.Unlock()
				return b.server.get(key), nil
			}
		}},
		{"ttl zero is no expiry", "ttl", func(b *broken) {
			b.livesFor(func(d time.Duration) time.Duration {
				if d == 0 {
					return tier.Forever
				}
				return d
			})
		}},
		{"a negative ttl changes nothing", "ttl", func(b *broken) {
			b.set = func(ctx context.Context, key string, v []byte, ttl time.Duration) error {
				if ttl < 0 {
					return nil
				}
				return b.MapBytes.Set(ctx, key, v, ttl)
			}
		}},
		{"ttl in whole seconds, down", "ttl", func(b *broken) {
			b.livesFor(func(d time.Duration) time.Duration { return d.Truncate(time.Second) })
		}},
		{"ttl in whole seconds, below one is none", "ttl", func(b *broken) {
			b.livesFor(func(d time.Duration) time.Duration {
				if d > 0 && d < time.Second {
					return tier.Forever
				}
				return d
			})
		}},
		{"ttl above 30 days is a date in 1970", "ttl", func(b *broken) {
			b.livesFor(func(d time.Duration) time.Duration {
				if d > 30*24*time.Hour {
					return 0
				}
				return d
			})
		}},
		{"ttl overflows 32 bits", "ttl", func(b *broken) {
			b.livesFor(func(d time.Duration) time.Duration { return time.Duration(int32(d/time.Second)) * time.Second })
		}},
		{"the old ttl stays", "a new ttl replaces the old", func(b *broken) {
			b.set = func(ctx context.Context, key string, v []byte, ttl time.Duration) error {
				b.server.mu.Lock()
				old, ok := b.server.values[key]
				b.server.mu.Unlock()
				if ok && old.until > tier.Now() {
					ttl = old.until.Sub(tier.Now())
				}
				return b.MapBytes.Set(ctx, key, v, ttl)
			}
		}},
		{"a value too large leaves the older", "a value too large", func(b *broken) {
			b.set = func(ctx context.Context, key string, v []byte, ttl time.Duration) error {
				if len(v) >= tooLarge {
					return tier.ErrTooLarge
				}
				return b.MapBytes.Set(ctx, key, v, ttl)
			}
		}},
		{"a value too large has no error of its own", "a value too large", func(b *broken) {
			b.set = func(ctx context.Context, key string, v []byte, ttl time.Duration) error {
				if len(v) >= tooLarge {
					return errors.Join(errors.New("SERVER_ERROR"), b.MapBytes.Delete(ctx, key))
				}
				return b.MapBytes.Set(ctx, key, v, ttl)
			}
		}},
		{"reads lag behind", "concurrent use", func(b *broken) {
			var mu sync.Mutex
			older := map[string][]byte{}
			b.set = func(ctx context.Context, key string, v []byte, ttl time.Duration) error {
				mu.Lock()
				defer mu.Unlock()
				older[key], _ = b.MapBytes.Get(ctx, key)
				return b.MapBytes.Set(ctx, key, v, ttl)
			}
			b.get = func(_ context.Context, key string) ([]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				return older[key], nil
			}
		}},
		{"answers get mixed up", "concurrent use", func(b *broken) {
			var n atomic.Int64
			b.get = func(ctx context.Context, key string) ([]byte, error) {
				if n.Add(1)%7 == 0 {
					key = "key 0"
				}
				return b.MapBytes.Get(ctx, key)
			}
		}},
		{"a context that has ended is not seen", "a context that has ended", func(b *broken) {
			b.get = func(ctx context.Context, key string) ([]byte, error) {
				if ctx.Err() != nil {
					time.Sleep(time.Minute)
				}
				return b.MapBytes.Get(ctx, key)
			}
		}},
		{"a write that was not made is no error", "a context that has ended", func(b *broken) {
			b.set = func(ctx context.Context, key string, v []byte, ttl time.Duration) error {
				if err := b.MapBytes.Set(ctx, key, v, ttl); !errors.Is(err, context.Canceled) {
					return err
				}
				return nil
			}
		}},
		{"a reply that was not awaited goes to the next", "contexts that end", func(b *broken) {
			var mu sync.Mutex
			var left []byte
			b.get = func(ctx context.Context, key string) ([]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				value, err := b.MapBytes.Get(context.WithoutCancel(ctx), key)
				if ctx.Err() != nil {
					left = value
					return nil, ctx.Err()
				}
				if left != nil {
					value, left = left, value
				}
				return value, err
			}
		}},
		{"Close is forgotten", "after Close", func(b *broken) { b.close = func() error { return nil } }},
		{"a second Close fails", "after Close", func(b *broken) {
			var closed atomic.Bool
			b.close = func() error {
				if closed.Swap(true) {
					return tier.ErrClosed
				}
				return b.MapBytes.Close()
			}
		}},
		{"use after Close panics", "after Close", func(b *broken) {
			b.get = func(ctx context.Context, key string) ([]byte, error) {
				v, err := b.MapBytes.Get(ctx, key)
				if errors.Is(err, tier.ErrClosed) {
					panic("send on closed channel")
				}
				return v, err
			}
		}},
		{"use during Close panics", "Close during use", func(b *broken) {
			b.set = func(ctx context.Context, key string, v []byte, ttl time.Duration) error {
				err := b.MapBytes.Set(ctx, key, v, ttl)
				if errors.Is(err, tier.ErrClosed) {
					panic("send on closed channel")
				}
				return err
			}
		}},
		{"a batch leaves out what is missing", "batch", func(b *broken) {
			b.getMany = func(ctx context.Context, keys []string) ([][]byte, error) {
				values, err := b.MapBytes.GetMany(ctx, keys)
				return slices.DeleteFunc(values, func(v []byte) bool { return v == nil }), err
			}
		}},
		{"a batch is answered in order of keys", "batch", func(b *broken) {
			b.getMany = func(ctx context.Context, keys []string) ([][]byte, error) {
				return b.MapBytes.GetMany(ctx, slices.Sorted(slices.Values(keys)))
			}
		}},
		{"a batch answers a repeated key once", "batch", func(b *broken) {
			b.getMany = func(ctx context.Context, keys []string) ([][]byte, error) {
				values, err := b.MapBytes.GetMany(ctx, keys)
				for i, key := range keys {
					if i < len(values) && slices.Contains(keys[:i], key) {
						values[i] = nil
					}
				}
				return values, err
			}
		}},
		{"a batch shares the slices of a repeated key", "batch", func(b *broken) {
			b.getMany = func(ctx context.Context, keys []string) ([][]byte, error) {
				values, err := b.MapBytes.GetMany(ctx, keys)
				for i, key := range keys {
					if i < len(values) {
						values[i] = values[slices.Index(keys, key)]
					}
				}
				return values, err
			}
		}},
		{"the first of a repeated key counts", "batch", func(b *broken) {
			b.setMany = func(ctx context.Context, keys []string, values [][]byte, ttls []time.Duration) error {
				for i := len(keys) - 1; i >= 0; i-- {
					if err := b.MapBytes.Set(ctx, keys[i], values[i], ttls[i]); err != nil {
						return err
					}
				}
				return b.MapBytes.SetMany(ctx, nil, nil, nil)
			}
		}},
		{"an empty batch fails", "batch", func(b *broken) {
			b.deleteMany = func(ctx context.Context, keys []string) error {
				if len(keys) == 0 {
					return errors.New("wrong number of arguments for 'del' command")
				}
				return b.MapBytes.DeleteMany(ctx, keys)
			}
		}},
		{"a batch has one ttl", "batch ttl", func(b *broken) {
			b.setMany = func(ctx context.Context, keys []string, values [][]byte, ttls []time.Duration) error {
				for i := range ttls {
					ttls[i] = ttls[0]
				}
				return b.MapBytes.SetMany(ctx, keys, values, ttls)
			}
		}},
		{"a batch loses odd keys", "batch of every kind of key", func(b *broken) {
			b.getMany = func(ctx context.Context, keys []string) ([][]byte, error) {
				values, err := b.MapBytes.GetMany(ctx, keys)
				for i, key := range keys {
					if strings.Contains(key, "\r\n") && i < len(values) {
						values[i] = nil
					}
				}
				return values, err
			}
		}},
		{"SetIf does not look", "swap", func(b *broken) {
			b.setIf = func(ctx context.Context, key string, v []byte, ttl time.Duration, _ []byte) (bool, error) {
				return true, b.MapBytes.Set(ctx, key, v, ttl)
			}
		}},
		{"SetIf compares all", "swap", func(b *broken) {
			b.setIf = func(ctx context.Context, key string, v []byte, ttl time.Duration, head []byte) (bool, error) {
				held, err := b.MapBytes.Get(ctx, key)
				if err != nil || !bytes.Equal(held, head) {
					return false, err
				}
				return true, b.MapBytes.Set(ctx, key, v, ttl)
			}
		}},
		{"SetIf compares as far as the head goes", "swap", func(b *broken) {
			b.setIf = func(ctx context.Context, key string, v []byte, ttl time.Duration, head []byte) (bool, error) {
				held, err := b.MapBytes.Get(ctx, key)
				if err != nil || !bytes.HasPrefix(held, head) || len(head) == 0 && len(held) > 0 {
					return false, err
				}
				return true, b.MapBytes.Set(ctx, key, v, ttl)
			}
		}},
		{"SetIf takes two steps", "swap, one wins", func(b *broken) {
			b.setIf = func(ctx context.Context, key string, v []byte, ttl time.Duration, head []byte) (bool, error) {
				held, err := b.MapBytes.Get(ctx, key)
				if err != nil || !bytes.Equal(held[:min(len(held), tier.HeadSize)], head) {
					return false, err
				}
				time.Sleep(time.Microsecond)
				return true, b.MapBytes.Set(ctx, key, v, ttl)
			}
		}},
		{"SetIf forgets the ttl", "swap ttl", func(b *broken) {
			b.setIf = func(ctx context.Context, key string, v []byte, _ time.Duration, head []byte) (bool, error) {
				return b.MapBytes.SetIf(ctx, key, v, tier.Forever, head)
			}
		}},
		{"Clear does nothing", "clear", func(b *broken) { b.clear = func(context.Context) error { return nil } }},
		{"Clear takes all there is", "clear", func(b *broken) {
			prefix := fmt.Sprintf("%p:", b)
			b.MapBytes = shared.Another()
			b.renames(func(key string) string { return prefix + key })
			b.clear = b.MapBytes.Clear
		}},
		{"a figure below -1", "usage", func(b *broken) { b.usage = func() tier.Usage { return tier.Usage{Cost: -56} } }},
		{"more than can be", "usage", func(b *broken) { b.usage = func() tier.Usage { return tier.Usage{Entries: 2, MaxEntries: 1} } }},
	} {
		t.Run(c.fault, func(t *testing.T) {
			s := newBytesSuite(func(testing.TB) tier.Bytes {
				b := newBroken(NewMapBytes())
				c.breaks(b)
				return b
			}, BytesOptions{TooLarge: tooLarge})
			wantFailure(t, s, bytesChecks, c.check)
		})
	}
}

// brokenStore is a store with methods replaced; it can swap and batch if that can.
type brokenStore struct {
	*tier.Encoded[string, string]
	get    func(ctx context.Context, key string) (*tier.Entry[string], error)
	set    func(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration) error
	delete func(ctx context.Context, key string) error
	setIf  func(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration, v tier.Version) (bool, error)
	bury   func(ctx context.Context, key string, hold time.Duration) error
	local  bool
}

func newBrokenStore() *brokenStore {
	e := tier.Encode[string](NewMapBytes(), codec.String())
	return &brokenStore{Encoded: e, get: e.Get, set: e.Set, delete: e.Delete, setIf: e.SetIf, bury: e.Bury}
}

func (b *brokenStore) Local() bool { return b.local }
func (b *brokenStore) Get(ctx context.Context, key string) (*tier.Entry[string], error) {
	return b.get(ctx, key)
}
func (b *brokenStore) Set(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration) error {
	return b.set(ctx, key, e, ttl)
}
func (b *brokenStore) Delete(ctx context.Context, key string) error { return b.delete(ctx, key) }
func (b *brokenStore) SetIf(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration, v tier.Version) (bool, error) {
	return b.setIf(ctx, key, e, ttl, v)
}
func (b *brokenStore) Bury(ctx context.Context, key string, hold time.Duration) error {
	return b.bury(ctx, key, hold)
}

// gives makes the store change the entries that it gives back.
func (b *brokenStore) gives(change func(value string, m *tier.Meta) string) {
	b.get = func(ctx context.Context, key string) (*tier.Entry[string], error) {
		e, err := b.Encoded.Get(ctx, key)
		if e == nil {
			return nil, err
		}
		m := e.Meta()
		value := change(e.Value(), &m)
		return tier.NewEntry(value, m), err
	}
}

func TestStoreSuiteFindsFaults(t *testing.T) {
	large := strings.Repeat("x", 1000)
	for _, c := range []struct {
		fault, check string
		breaks       func(b *brokenStore)
	}{
		{"it keeps nothing", "nothing is nil", func(b *brokenStore) {
			b.get = func(context.Context, string) (*tier.Entry[string], error) { return nil, nil }
		}},
		{"an empty value is absent", "values of every kind", func(b *brokenStore) {
			b.gives(func(v string, m *tier.Meta) string { m.Absent = m.Absent || v == ""; return v })
		}},
		{"values change", "values of every kind", func(b *brokenStore) {
			b.gives(func(v string, _ *tier.Meta) string { return strings.ToValidUTF8(v, "?") })
		}},
		{"absence is lost", "all that an entry has", func(b *brokenStore) {
			b.gives(func(v string, m *tier.Meta) string { m.Absent = false; return v })
		}},
		{"tags are lost", "all that an entry has", func(b *brokenStore) {
			b.gives(func(v string, m *tier.Meta) string { m.Tags = nil; return v })
		}},
		{"the load time is in seconds", "all that an entry has", func(b *brokenStore) {
			b.gives(func(v string, m *tier.Meta) string { m.LoadTime = m.LoadTime.Truncate(time.Second); return v })
		}},
		{"the age starts anew", "all that an entry has", func(b *brokenStore) {
			b.gives(func(v string, m *tier.Meta) string { m.LoadedAt = tier.Now(); return v })
		}},
		{"keys lose what follows a NUL", "keys of every kind", func(b *brokenStore) {
			cut := func(key string) string { key, _, _ = strings.Cut(key, "\x00"); return key }
			b.get = func(ctx context.Context, key string) (*tier.Entry[string], error) {
				return b.Encoded.Get(ctx, cut(key))
			}
			b.set = func(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration) error {
				return b.Encoded.Set(ctx, cut(key), e, ttl)
			}
		}},
		{"writes come late", "the last write counts", func(b *brokenStore) {
			b.set = func(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration) error {
				time.AfterFunc(2*time.Millisecond, func() { _ = b.Encoded.Set(ctx, key, e, ttl) })
				return nil
			}
		}},
		{"every third write is lost", "the last write counts", func(b *brokenStore) {
			n := 0
			b.set = func(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration) error {
				if n++; n%3 == 0 {
					return nil
				}
				return b.Encoded.Set(ctx, key, e, ttl)
			}
		}},
		{"a deleted entry comes back", "deleted stays deleted", func(b *brokenStore) {
			b.set = func(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration) error {
				time.AfterFunc(2*time.Millisecond, func() { _ = b.Encoded.Set(ctx, key, e, ttl) })
				return b.Encoded.Set(ctx, key, e, ttl)
			}
		}},
		{"the ttl does not show in the entry", "ttl bounds the life", func(b *brokenStore) {
			b.set = func(ctx context.Context, key string, e *tier.Entry[string], _ time.Duration) error {
				return b.Encoded.Set(ctx, key, e, tier.Forever)
			}
		}},
		{"the ttl takes the place of the life", "ttl bounds the life", func(b *brokenStore) {
			var ttls sync.Map
			b.set = func(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration) error {
				ttls.Store(e.Validator(), tier.Now().Add(ttl))
				return b.Encoded.Set(ctx, key, e, ttl)
			}
			b.gives(func(v string, m *tier.Meta) string {
				until, _ := ttls.Load(m.Validator)
				m.UsableUntil = until.(tier.Instant)
				return v
			})
		}},
		{"the ttl moves the refresh", "ttl bounds the life", func(b *brokenStore) {
			b.gives(func(v string, m *tier.Meta) string { m.FreshUntil = min(m.FreshUntil, m.UsableUntil); return v })
		}},
		{"ttl zero is no expiry", "ttl of zero and less", func(b *brokenStore) {
			b.set = func(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration) error {
				if ttl <= 0 {
					ttl = tier.Forever
				}
				return b.Encoded.Set(ctx, key, e, ttl)
			}
		}},
		{"ttl zero changes nothing", "ttl of zero and less", func(b *brokenStore) {
			b.set = func(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration) error {
				if ttl <= 0 {
					return nil
				}
				return b.Encoded.Set(ctx, key, e, ttl)
			}
		}},
		{"a life starts anew at each read", "passing on does not lengthen a life", func(b *brokenStore) {
			b.gives(func(v string, m *tier.Meta) string { m.UsableUntil = tier.Now().Add(life); return v })
		}},
		{"lives do not end", "a life ends", func(b *brokenStore) {
			b.gives(func(v string, m *tier.Meta) string { m.UsableUntil = tier.Never; return v })
			b.set = func(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration) error {
				m := e.Meta()
				m.UsableUntil = tier.Never
				return b.Encoded.Set(ctx, key, tier.NewEntry(e.Value(), m), tier.Forever)
			}
		}},
		{"a value too large leaves the older", "a value too large", func(b *brokenStore) {
			b.set = func(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration) error {
				if len(e.Value()) >= len(large) {
					return tier.ErrTooLarge
				}
				return b.Encoded.Set(ctx, key, e, ttl)
			}
		}},
		{"another key's entry", "concurrent use", func(b *brokenStore) {
			var n atomic.Int64
			b.get = func(ctx context.Context, key string) (*tier.Entry[string], error) {
				if n.Add(1)%7 == 0 {
					return tier.NewEntry("", tier.Meta{UsableUntil: tier.Never, Validator: "1000 another"}), nil
				}
				return b.Encoded.Get(ctx, key)
			}
		}},
		{"a local store heeds its context", "a context that has ended", func(b *brokenStore) { b.local = true }},
		{"SetIf does not look", "swap", func(b *brokenStore) {
			b.setIf = func(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration, _ tier.Version) (bool, error) {
				return true, b.Encoded.Set(ctx, key, e, ttl)
			}
		}},
		{"SetIf takes two steps", "swap, one wins", func(b *brokenStore) {
			b.setIf = func(ctx context.Context, key string, e *tier.Entry[string], ttl time.Duration, v tier.Version) (bool, error) {
				if _, held, err := b.GetVersion(ctx, key); err != nil || held != v {
					return false, err
				}
				time.Sleep(time.Microsecond)
				return true, b.Encoded.Set(ctx, key, e, ttl)
			}
		}},
		{"Bury leaves no tombstone", "bury", func(b *brokenStore) {
			b.bury = func(ctx context.Context, key string, _ time.Duration) error { return b.Encoded.Delete(ctx, key) }
		}},
		{"a tombstone stays", "bury", func(b *brokenStore) {
			b.bury = func(ctx context.Context, key string, _ time.Duration) error {
				return b.Encoded.Bury(ctx, key, tier.Forever)
			}
		}},
	} {
		t.Run(c.fault, func(t *testing.T) {
			s := newStoreSuite(func(testing.TB) tier.Store[string, string] {
				b := newBrokenStore()
				c.breaks(b)
				return b
			}, StoreOptions[string]{Values: []string{"", "value", "\xff"}, TooLarge: &large})
			wantFailure(t, s, s.checks(), c.check)
		})
	}
}

// The suite finds nothing wrong with what is right, by the same means.
func TestSuiteFindsNoFaultWhereNoneIs(t *testing.T) {
	s := newBytesSuite(func(testing.TB) tier.Bytes { return newBroken(NewMapBytes()) }, BytesOptions{})
	for _, checks := range [][]check[bytesSuite]{bytesChecks, encodedChecks} {
		if failed := failures(t, s, checks); len(failed) > 0 {
			t.Errorf("checks of byte stores fail: %v", failed)
		}
	}
	st := newStoreSuite(func(testing.TB) tier.Store[string, string] { return newBrokenStore() }, StoreOptions[string]{})
	if failed := failures(t, st, st.checks()); len(failed) > 0 {
		t.Errorf("checks of stores fail: %v", failed)
	}
}
