package tier_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
	"github.com/terracecache/terrace/tier/storetest"
)

const envelopeSize = 48

// keyOf is a key for tests.
func keyOf(x byte) []byte { return bytes.Repeat([]byte{x}, codec.KeySize) }

func encryption(t testing.TB, keys ...byte) *codec.Encryption {
	t.Helper()
	var all [][]byte
	for _, x := range keys {
		all = append(all, keyOf(x))
	}
	e, err := codec.NewEncryption(all...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

type options = tier.EncodeOptions[string]

func stringsIn(b tier.Bytes, o options) *tier.Encoded[string, string] {
	return tier.EncodeWith(b, codec.String(), o)
}

// held returns the bytes under the key.
func held(t testing.TB, b tier.Bytes, key string) []byte {
	t.Helper()
	v, err := b.Get(ctx, key)
	if err != nil || v == nil {
		t.Fatalf("bytes under %q: %v, %v", key, v, err)
	}
	return v
}

// hold puts bytes under the key with a checksum that is right: who writes to the store
// can reckon it.
func hold(t testing.TB, b tier.Bytes, key string, v []byte) {
	t.Helper()
	v = slices.Clone(v)
	if len(v) >= 24 {
		table := crc32.MakeTable(crc32.Castagnoli)
		sum := crc32.Update(0, table, []byte(key))
		sum = crc32.Update(sum, table, v[:20])
		binary.BigEndian.PutUint32(v[20:], crc32.Update(sum, table, v[24:]))
	}
	if err := b.Set(ctx, key, v, tier.Forever); err != nil {
		t.Fatal(err)
	}
}

func reads(t *testing.T, s tier.Store[string, string], key, want string) {
	t.Helper()
	e, err := s.Get(ctx, key)
	if err != nil || e == nil || e.Value() != want {
		t.Errorf("Get(%q) = %v, %v, want %.40q", key, e, err, want)
	}
}

func unreadableFor(t *testing.T, s tier.Store[string, string], key, reason string) {
	t.Helper()
	e, err := s.Get(ctx, key)
	var u *tier.UnreadableError
	if e != nil || !errors.As(err, &u) || u.Reason != reason {
		t.Errorf("Get(%q) = %v, %v, want it unreadable for its %s", key, e, err, reason)
	}
}

// every calls f with each combination of what can be done to a payload.
func every(t *testing.T, f func(t *testing.T, o options)) {
	for _, algorithm := range []codec.Algorithm{codec.None, codec.S2, codec.Zstd} {
		for _, encrypted := range []bool{false, true} {
			o := options{Compression: codec.Compression{Algorithm: algorithm, MinSize: 1}}
			if encrypted {
				o.Encryption = encryption(t, 1)
			}
			t.Run(fmt.Sprintf("%v, encrypted %v", algorithm, encrypted), func(t *testing.T) { f(t, o) })
		}
	}
}

func TestTransformRoundTrip(t *testing.T) {
	type thing struct {
		Name string
		Tags []string
	}
	things := []thing{{}, {Name: "x"}, {Name: strings.Repeat("long ", 500)}, {Tags: slices.Repeat([]string{"tag"}, 100_000)}}
	every(t, func(t *testing.T, o options) {
		transformed(t, codec.JSON[thing](), o, things...)
		transformed(t, codec.MsgPack[thing](), o, things[:3]...)
		transformed(t, codec.Gob[[]string](), o, nil, []string{}, []string{"", "a"}, slices.Repeat([]string{"tag"}, 1000))
		transformed(t, codec.Raw(), o, nil, []byte{}, []byte{0}, bytes.Repeat([]byte{1, 2}, 1<<20), randomBytes(300_000))
		transformed(t, codec.String(), o, "", "x", strings.Repeat("x", 255), strings.Repeat("x", 256), strings.Repeat("xy", 64<<10), strings.Repeat("xy", 64<<10+1))
	})
}

func transformed[V any](t *testing.T, c tier.Codec[V], o options, values ...V) {
	t.Helper()
	b := storetest.NewMapBytes()
	s := tier.EncodeWith(b, c, o)
	for i, want := range values {
		now := tier.Now()
		e := tier.NewEntry(want, tier.Meta{
			LoadedAt: now, FreshUntil: now.Add(time.Minute), UsableUntil: now.Add(time.Hour),
			LoadTime: time.Second, Tags: []string{"a tag", ""}, Validator: "a validator",
		})
		if err := s.Set(ctx, "key", e, tier.Forever); err != nil {
			t.Fatalf("%s, value %d: %v", c.Name(), i, err)
		}
		got, err := s.Get(ctx, "key")
		if err != nil || got == nil || !reflect.DeepEqual(got.Value(), want) || got.Validator() != e.Validator() {
			t.Fatalf("%s, value %d does not come back: %v", c.Name(), i, err)
		}
		gotMeta, meta := got.Meta(), e.Meta()
		gotMeta.LoadedAt, gotMeta.FreshUntil, gotMeta.UsableUntil = meta.LoadedAt, meta.FreshUntil, meta.UsableUntil
		if !reflect.DeepEqual(gotMeta, meta) {
			t.Errorf("%s, value %d: got %+v, want %+v", c.Name(), i, gotMeta, meta)
		}
		if o.Encryption != nil && bytes.Contains(held(t, b, "key"), []byte("a tag")) {
			t.Errorf("%s, value %d: tags are in the clear", c.Name(), i)
		}
	}
}

func randomBytes(n int) []byte {
	r := rand.NewChaCha8([32]byte{1})
	b := make([]byte, n)
	_, _ = r.Read(b)
	return b
}

func TestMinSize(t *testing.T) {
	b := storetest.NewMapBytes()
	for _, c := range []struct {
		size, minSize int
		compressed    bool
	}{
		{codec.DefaultMinSize - 1, 0, false}, {codec.DefaultMinSize, 0, true},
		{99, 100, false}, {100, 100, true}, {100, 1, true}, {1, 1, false},
	} {
		for _, algorithm := range []codec.Algorithm{codec.S2, codec.Zstd} {
			s := stringsIn(b, options{Compression: codec.Compression{Algorithm: algorithm, MinSize: c.minSize}})
			mustSet[string, string](t, s, "key", strings.Repeat("x", c.size))
			v := held(t, b, "key")
			if got := v[3] == byte(algorithm) && len(v) < envelopeSize+c.size; got != c.compressed {
				t.Errorf("%v, %d bytes of at least %d: compressed is %v: transform %#x, %d bytes", algorithm, c.size, c.minSize, got, v[3], len(v))
			}
			reads(t, s, "key", strings.Repeat("x", c.size))
		}
	}
}

// What does not shrink, and what its reader would refuse, stays as it is.
func TestStaysPlain(t *testing.T) {
	b := storetest.NewMapBytes()
	for _, algorithm := range []codec.Algorithm{codec.S2, codec.Zstd} {
		random := string(randomBytes(10_000))
		s := stringsIn(b, options{Compression: codec.Compression{Algorithm: algorithm}})
		mustSet[string, string](t, s, "key", random)
		if v := held(t, b, "key"); v[3] != 0 || len(v) != envelopeSize+len(random) {
			t.Errorf("%v: what cannot shrink has the transform %#x and %d bytes", algorithm, v[3], len(v))
		}
		reads(t, s, "key", random)
		s = stringsIn(b, options{Compression: codec.Compression{Algorithm: algorithm, MaxSize: 5000}})
		large := strings.Repeat("x", 5001)
		mustSet[string, string](t, s, "key", large)
		if v := held(t, b, "key"); v[3] != 0 {
			t.Errorf("%v: what is above MaxSize has the transform %#x", algorithm, v[3])
		}
		reads(t, s, "key", large)
	}
}

// Whatever a reader writes itself, it reads what the others write, so settings can
// change in one process after the other.
func TestMixedReaders(t *testing.T) {
	b, long := storetest.NewMapBytes(), strings.Repeat("long ", 1000)
	all := []codec.Compression{{}, {Algorithm: codec.S2}, {Algorithm: codec.Zstd}, {Algorithm: codec.S2, MinSize: 1}, {Algorithm: codec.Zstd, MinSize: 10_000}}
	for _, sealer := range []tier.Sealer{nil, encryption(t, 1)} {
		for _, w := range all {
			mustSet[string, string](t, stringsIn(b, options{Compression: w, Encryption: sealer}), "key", long)
			for _, r := range all {
				reads(t, stringsIn(b, options{Compression: r, Encryption: sealer}), "key", long)
			}
			if held(t, b, "key")[3]&0x0f != 0 {
				unreadableFor(t, stringsIn(b, options{Encryption: sealer}), "key", "transform")
			} else {
				reads(t, stringsIn(b, options{Encryption: sealer}), "key", long)
			}
		}
	}
	// An algorithm of tomorrow is a miss.
	mustSet[string, string](t, stringsIn(b, options{}), "key", long)
	v := held(t, b, "key")
	for algorithm := byte(3); algorithm < 16; algorithm++ {
		v[3] = algorithm
		hold(t, b, "key", v)
		unreadableFor(t, stringsIn(b, options{Compression: codec.Compression{}}), "key", "transform")
	}
}

func TestEncryptionIsNotOptional(t *testing.T) {
	b := storetest.NewMapBytes()
	plain, sealed := stringsIn(b, options{}), stringsIn(b, options{Encryption: encryption(t, 1)})
	absent := func(s tier.Store[string, string], key string) {
		t.Helper()
		now := tier.Now()
		if err := s.Set(ctx, key, tier.NewEntry("", tier.Meta{LoadedAt: now, FreshUntil: tier.Never, UsableUntil: tier.Never, Absent: true}), tier.Forever); err != nil {
			t.Fatal(err)
		}
	}
	mustSet[string, string](t, plain, "plain", "value")
	absent(plain, "plain absent")
	mustSet[string, string](t, sealed, "sealed", "value")
	absent(sealed, "sealed absent")
	unreadableFor(t, sealed, "plain", "transform")
	unreadableFor(t, sealed, "plain absent", "transform")
	unreadableFor(t, plain, "sealed", "transform")
	unreadableFor(t, plain, "sealed absent", "transform")
	reads(t, sealed, "sealed", "value")
	if e, err := sealed.Get(ctx, "sealed absent"); err != nil || e == nil || !e.Absent() {
		t.Errorf("a sealed absence: %v, %v", e, err)
	}

	// A nil is no payload that could be decrypted, so it must be sealed all the same.
	pointers := func(o options) *tier.Encoded[string, *int] { return tier.EncodeWith(b, codec.JSON[*int](), o) }
	mustSet[string, *int](t, pointers(options{}), "nil", nil)
	if e, err := pointers(options{Encryption: encryption(t, 1)}).Get(ctx, "nil"); e != nil || !errors.Is(err, tier.ErrUnreadable) {
		t.Errorf("a plain nil: %v, %v, want it unreadable", e, err)
	}
}

// Tombstones are the same for all, whatever they encrypt with: a deletion must stop the
// loads of every process.
func TestTombstonesArePlain(t *testing.T) {
	b := storetest.NewMapBytes()
	stores := []*tier.Encoded[string, string]{
		stringsIn(b, options{}), stringsIn(b, options{Encryption: encryption(t, 1)}), stringsIn(b, options{Encryption: encryption(t, 2)}),
	}
	for i, deleter := range stores {
		for j, other := range stores {
			mustSet[string, string](t, other, "key", "old")
			_, before, err := other.GetVersion(ctx, "key")
			if err != nil {
				t.Fatal(err)
			}
			if err := deleter.Bury(ctx, "key", time.Minute); err != nil {
				t.Fatal(err)
			}
			e, version, err := other.GetVersion(ctx, "key")
			if e != nil || err != nil {
				t.Errorf("%d deletes, %d reads: %v, %v, want a miss", i, j, e, err)
			}
			if _, ok := version.Time(); !ok {
				t.Errorf("%d deletes, %d reads: the tombstone has no time", i, j)
			}
			if stored, err := other.SetIf(ctx, "key", entry("late"), time.Minute, before); stored || err != nil {
				t.Errorf("%d deletes, %d stores on the version before: %v, %v", i, j, stored, err)
			}
			if stored, err := other.SetIf(ctx, "key", entry("new"), time.Minute, version); !stored || err != nil {
				t.Errorf("%d deletes, %d stores on the tombstone: %v, %v", i, j, stored, err)
			}
		}
	}
	if err := stores[1].Bury(ctx, "key", time.Minute); err != nil {
		t.Fatal(err)
	}
	if v := held(t, b, "key"); len(v) != envelopeSize || v[3] != 0 {
		t.Errorf("a tombstone has the transform %#x and %d bytes", v[3], len(v))
	}
}

// No change that whoever can write to the store can make gives a readable entry, also
// where he mends the checksum. The checksum itself decides nothing then.
func TestSealedEntriesCannotBeChanged(t *testing.T) {
	b := storetest.NewMapBytes()
	for _, algorithm := range []codec.Algorithm{codec.None, codec.Zstd} {
		s := stringsIn(b, options{Compression: codec.Compression{Algorithm: algorithm, MinSize: 1}, Encryption: encryption(t, 1)})
		mustSet[string, string](t, s, "key", strings.Repeat("value ", 50))
		good := held(t, b, "key")
		unreadable := func(what string) {
			t.Helper()
			if e, err := s.Get(ctx, "key"); e != nil || !errors.Is(err, tier.ErrUnreadable) {
				t.Errorf("%v: %s: Get = %v, %v, want it unreadable", algorithm, what, e, err)
			}
		}
		for i := range good {
			for bit := range 8 {
				bad := slices.Clone(good)
				bad[i] ^= 1 << bit
				if err := b.Set(ctx, "key", bad, tier.Forever); err != nil {
					t.Fatal(err)
				}
				unreadable(fmt.Sprintf("bit %d of byte %d", bit, i))
				if i < 20 || i >= 24 {
					hold(t, b, "key", bad)
					unreadable(fmt.Sprintf("bit %d of byte %d and the checksum", bit, i))
				}
			}
		}
		for n := range len(good) {
			hold(t, b, "key", good[:n])
			unreadable(fmt.Sprintf("the first %d bytes", n))
		}
		hold(t, b, "key", append(slices.Clone(good), 0))
		unreadable("a byte more")

		hold(t, b, "another key", good)
		unreadableFor(t, s, "another key", "decode")
		hold(t, b, "key", good)
		reads(t, s, "key", strings.Repeat("value ", 50))
	}
}

func TestKeyRotation(t *testing.T) {
	b := storetest.NewMapBytes()
	with := func(keys ...byte) *tier.Encoded[string, string] {
		return stringsIn(b, options{Encryption: encryption(t, keys...)})
	}
	mustSet[string, string](t, with(1), "old", "value")
	mustSet[string, string](t, with(2, 1), "new", "value")
	for _, keys := range [][]byte{{1}, {1, 2}, {2, 1}, {3, 2, 1}} {
		reads(t, with(keys...), "old", "value")
	}
	for _, keys := range [][]byte{{2}, {1, 2}, {2, 1}} {
		reads(t, with(keys...), "new", "value")
	}
	unreadableFor(t, with(2), "old", "decode")
	unreadableFor(t, with(1), "new", "decode")
	_, err := with(2).Get(ctx, "old")
	var u *tier.UnreadableError
	if !errors.As(err, &u) || u.Err == nil || !strings.Contains(u.Err.Error(), "key that is not known") {
		t.Errorf("a removed key: %v", err)
	}
}

// bombs are payloads that are too large, truthful and not, by algorithm.
func bombs(t testing.TB, limit int) map[string][]byte {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	long := make([]byte, 4*limit)
	// 00 00 00 01 is RLE: as many zeros as its length says.
	rle := func(n int, last uint32) []byte {
		h := uint32(n)<<3 | 1<<1 | last
		return []byte{byte(h), byte(h >> 8), byte(h >> 16), 0}
	}
	header := func(size uint32) []byte { // single segment, size in 4 bytes
		return binary.LittleEndian.AppendUint32([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0}, size)
	}
	lying := slices.Concat(header(uint32(limit)), bytes.Repeat(rle(128<<10, 0), 8*limit>>17+8), rle(1, 1))
	return map[string][]byte{
		"1 s2, truthful":                 s2.Encode(nil, long),
		"1 s2, forged":                   append(binary.AppendUvarint(nil, 1<<32-1), 0),
		"1 s2, forged beyond 32 bits":    append(binary.AppendUvarint(nil, 1<<62), 0),
		"1 s2, forged within the limit":  append(binary.AppendUvarint(nil, uint64(limit)), 0),
		"1 s2, one too many":             s2.Encode(nil, long[:limit+1]),
		"1 s2, nothing":                  {},
		"2 zstd, truthful":               e.EncodeAll(long, nil),
		"2 zstd, one too many":           e.EncodeAll(long[:limit+1], nil),
		"2 zstd, forged":                 append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0),
		"2 zstd, forged within":          append(header(uint32(limit)), rle(10, 1)...),
		"2 zstd, more than it says":      lying,
		"2 zstd, two frames":             append(e.EncodeAll(long[:limit], nil), e.EncodeAll(long[:limit], nil)...),
		"2 zstd, no size":                append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58}, rle(10, 1)...),
		"2 zstd, skippable":              {0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 0},
		"2 zstd, a window of 2 TiB":      append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x80, 0xf8, 10, 0, 0, 0}, rle(10, 1)...),
		"2 zstd, a dictionary":           {0x28, 0xb5, 0x2f, 0xfd, 0x21, 7, 1, 9, 0, 0, 0},
		"2 zstd, nothing":                {},
		"2 zstd, a header and no blocks": header(1),
	}
}

func TestBombs(t *testing.T) {
	const limit = 1 << 20
	b := storetest.NewMapBytes()
	s := stringsIn(b, options{Compression: codec.Compression{MaxSize: limit}})
	mustSet[string, string](t, s, "key", "")
	head := held(t, b, "key")
	for name, payload := range bombs(t, limit) {
		head[3] = name[0] - '0'
		hold(t, b, "key", append(slices.Clone(head), payload...))
		most := uint64(limit + limit/2) // and what a decoder keeps for itself
		if name == "2 zstd, more than it says" {
			most = 3 * limit // the package below notices it after the block that is too much
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		unreadableFor(t, s, "key", "decode")
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > most {
			t.Errorf("%s: %d bytes allocated, want at most %d", name, used, most)
		}
	}
	// What is as long as may be is none.
	long := strings.Repeat("\x00", limit)
	for _, algorithm := range []codec.Algorithm{codec.S2, codec.Zstd} {
		mustSet[string, string](t, stringsIn(b, options{Compression: codec.Compression{Algorithm: algorithm}}), "key", long)
		reads(t, s, "key", long)
	}
}

func TestTransformsConform(t *testing.T) {
	for _, algorithm := range []codec.Algorithm{codec.S2, codec.Zstd} {
		t.Run(algorithm.String(), func(t *testing.T) {
			storetest.TestStoreWith(t, func(t testing.TB) tier.Store[string, string] {
				return stringsIn(storetest.NewMapBytes(), options{
					Compression: codec.Compression{Algorithm: algorithm, MinSize: 1},
					Encryption:  encryption(t, 1, 2),
				})
			}, storetest.StoreOptions[string]{Values: []string{"", "value", "\x00\xff", strings.Repeat("long ", 1000)}, Virtual: true})
		})
	}
}

// What is used inside a bubble of virtual time works outside, and the reverse.
func TestTransformsInsideAndOutsideBubbles(t *testing.T) {
	b, long := storetest.NewMapBytes(), strings.Repeat("long ", 1000)
	s := stringsIn(b, options{Compression: codec.Compression{Algorithm: codec.Zstd}, Encryption: encryption(t, 1)})
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			mustSet[string, string](t, s, "key", long)
			reads(t, s, "key", long)
		})
		mustSet[string, string](t, s, "key", long)
		reads(t, s, "key", long)
	}
}

func TestTransformsConcurrently(t *testing.T) {
	defer goleak.VerifyNone(t)
	b := storetest.NewMapBytes()
	sealer := encryption(t, 1, 2)
	var wg sync.WaitGroup
	for i := range 8 {
		s := stringsIn(b, options{Compression: codec.Compression{Algorithm: codec.Algorithm(i % 3)}, Encryption: sealer})
		wg.Go(func() {
			for j := range 50 {
				key, value := fmt.Sprint("key ", i), strings.Repeat(fmt.Sprint(i, " ", j, ","), 200*(1+j))
				if err := s.Set(ctx, key, entry(value), tier.Forever); err != nil {
					t.Error(err)
				}
				reads(t, s, key, value)
				if _, err := s.Get(ctx, fmt.Sprint("key ", (i+1)%8)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// rude is a Compressor and a Sealer that do what they must not.
type rude struct {
	algorithm, scheme byte
	panics            bool
	invalid           error
}

func (r rude) Compress(dst, payload []byte) ([]byte, byte) {
	if r.panics {
		panic(string(payload))
	}
	return append(dst, payload...), r.algorithm
}

func (r rude) Decompress(data []byte, _ byte) ([]byte, error) {
	if r.panics {
		panic(string(data))
	}
	return data, nil
}

func (r rude) Scheme() byte    { return r.scheme }
func (r rude) Validate() error { return r.invalid }

func (r rude) Seal(dst, plaintext, _ []byte) ([]byte, error) {
	if r.panics {
		panic(string(plaintext))
	}
	return append(dst, plaintext...), nil
}

func (r rude) Open(sealed, _ []byte) ([]byte, error) {
	if r.panics {
		panic(string(sealed))
	}
	return sealed, nil
}

func TestTransformsThatFail(t *testing.T) {
	b := storetest.NewMapBytes()
	fails := func(what string, o options) {
		t.Helper()
		mustSet[string, string](t, stringsIn(b, options{}), "key", "older")
		err := stringsIn(b, o).Set(ctx, "key", entry("a secret"), tier.Forever)
		if !errors.Is(err, tier.ErrUnencodable) || strings.Contains(fmt.Sprintf("%+v", err), "secret") {
			t.Errorf("%s: Set gives error %v, want tier.ErrUnencodable without the value", what, err)
		}
		if v, _ := b.Get(ctx, "key"); v != nil {
			t.Errorf("%s: the older value is there", what)
		}
	}
	fails("a compressor that panics", options{Compression: rude{panics: true}})
	fails("an algorithm of 16", options{Compression: rude{algorithm: 16}})
	fails("a sealer that panics", options{Encryption: rude{scheme: 1, panics: true}})

	mustSet[string, string](t, stringsIn(b, options{Compression: rude{algorithm: 15}}), "key", "a secret")
	unreadableFor(t, stringsIn(b, options{Compression: rude{panics: true}}), "key", "decode")
	mustSet[string, string](t, stringsIn(b, options{Encryption: rude{scheme: 15}}), "key", "a secret")
	unreadableFor(t, stringsIn(b, options{Encryption: rude{scheme: 15, panics: true}}), "key", "decode")
	unreadableFor(t, stringsIn(b, options{Encryption: rude{scheme: 14}}), "key", "transform")

	wrong := errors.New("wrong")
	var none *codec.Encryption
	for what, o := range map[string]options{
		"scheme 0":             {Encryption: rude{}},
		"scheme 16":            {Encryption: rude{scheme: 16}},
		"an invalid sealer":    {Encryption: rude{scheme: 1, invalid: wrong}},
		"an invalid one":       {Compression: rude{invalid: wrong}},
		"a nil encryption":     {Encryption: none},
		"an empty encryption":  {Encryption: &codec.Encryption{}},
		"a negative size":      {Compression: codec.Compression{MinSize: -1}},
		"an unknown algorithm": {Compression: codec.Compression{Algorithm: 3}},
	} {
		s := stringsIn(b, o)
		if s.Validate() == nil {
			t.Errorf("%s: Validate gives no error", what)
		}
		if err := s.Set(ctx, "invalid", entry("x"), tier.Forever); err == nil {
			t.Errorf("%s: Set gives no error", what)
		}
	}
	if keys := b.Keys(); slices.Contains(keys, "invalid") {
		t.Error("an invalid store writes")
	}
}

// transformGoldens are the examples of docs/wire-format.md, which other versions and
// other languages read. Only reading is held still: how well a compressor does may change.
var transformGoldens = []struct{ name, payload, want string }{
	{"s2", goldenTea, `
c7 01 00 01 01 02 03 04 17 97 9c fe 36 2a 00 00
72 65 61 48 fa bd da db 00 00 00 45 d9 64 b8 00
00 00 03 46 30 b8 a0 00 00 00 00 00 02 88 7f a0
42 4c 7b 22 49 44 22 3a 31 2c 22 4e 61 6d 65 22
3a 22 74 65 61 20 ae 04 00 04 22 7d`},
	{"zstd", goldenTea, `
c7 01 00 02 01 02 03 04 17 97 9c fe 36 2a 00 00
72 65 61 48 b6 fe 78 7e 00 00 00 45 d9 64 b8 00
00 00 03 46 30 b8 a0 00 00 00 00 00 02 88 7f a0
28 b5 2f fd 20 42 f5 00 00 64 01 7b 22 49 44 22
3a 31 2c 22 4e 61 6d 65 22 3a 22 74 65 61 20 22
7d 01 54 12 02 24 3a`},
	{"aes-256-gcm", `{"ID":1}`, `
c7 01 04 10 01 02 03 04 17 97 9c fe 36 2a 00 00
72 65 61 48 fd 75 1e 0a 00 00 00 45 d9 64 b8 00
00 00 03 46 30 b8 a0 00 00 00 00 00 02 88 7f a0
36 c9 59 07 a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 aa ab
e7 1c 0f 45 2a bb 79 9d 2b 21 a5 e9 36 07 c1 b1
2f 41 ae d9 e2 ef bb 49 ab 1c 83 a1 80 cc`},
	{"s2, aes-256-gcm", goldenTea, `
c7 01 00 11 01 02 03 04 17 97 9c fe 36 2a 00 00
72 65 61 48 ef 66 15 10 00 00 00 45 d9 64 b8 00
00 00 03 46 30 b8 a0 00 00 00 00 00 02 88 7f a0
36 c9 59 07 a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 aa ab
a4 54 07 0f 0c 8f 20 85 53 49 a5 9d 66 17 a5 fc
4a 8e 2d 75 f3 97 ec 68 9c 0a 04 fb 0e c8 4a 38
16 68 af 99 6a 10 78 0a 2e fe 9e 79`},
}

var goldenTea = `{"ID":1,"Name":"` + strings.Repeat("tea ", 12) + `"}`

func TestTransformGolden(t *testing.T) {
	doc, err := os.ReadFile("../docs/wire-format.md")
	if err != nil {
		t.Fatal(err)
	}
	key := make([]byte, codec.KeySize)
	for i := range key {
		key[i] = byte(i)
	}
	sealer, err := codec.NewEncryption(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range transformGoldens {
		want := strings.TrimSpace(g.want)
		if !strings.Contains(string(doc), "```\n"+want+"\n```") {
			t.Errorf("%s: docs/wire-format.md does not show these bytes", g.name)
		}
		v, err := hex.DecodeString(strings.Join(strings.Fields(want), ""))
		if err != nil {
			t.Fatal(err)
		}
		b := storetest.NewMapBytes()
		if err := b.Set(ctx, "sku-1", v, tier.Forever); err != nil {
			t.Fatal(err)
		}
		o := options{Schema: "json example.com/shop.Product", Compression: codec.Compression{}}
		if v[3]>>4 != 0 {
			o.Encryption = sealer
		}
		e, err := stringsIn(b, o).Get(ctx, "sku-1")
		if err != nil || e.Value() != g.payload {
			t.Errorf("%s: got %v, %v, want %q", g.name, e, err, g.payload)
			continue
		}
		if tags := e.Tags(); v[2] == 4 && !slices.Equal(tags, []string{"shop"}) {
			t.Errorf("%s: tags %q", g.name, tags)
		}
		if life, loading := e.UsableUntil().Sub(e.LoadedAt()), e.LoadTime(); life != time.Hour || loading != 42_500*time.Microsecond {
			t.Errorf("%s: usable for %v, loaded in %v", g.name, life, loading)
		}
	}
}

// What is written encrypted is what docs/wire-format.md says, by other means.
func TestSealedLayout(t *testing.T) {
	b := storetest.NewMapBytes()
	mustSet[string, string](t, stringsIn(b, options{Encryption: encryption(t, 7)}), "key", "value")
	v := held(t, b, "key")
	id := sha256.Sum256(append([]byte("terrace key id\x00"), keyOf(7)...))
	if !bytes.Equal(v[48:52], id[:4]) || v[3] != 0x10 {
		t.Errorf("transform %#x, key id %x, want %x", v[3], v[48:52], id[:4])
	}
	block, err := aes.NewCipher(keyOf(7))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	got, err := gcm.Open(nil, v[52:64], v[64:], slices.Concat(v[:20], v[24:48], []byte("key")))
	if err != nil || string(got) != "value" {
		t.Errorf("decrypted by hand: %q, %v", got, err)
	}
}

func FuzzTransforms(f *testing.F) {
	for _, payload := range bombs(f, 1<<16) {
		f.Add(payload)
	}
	b := storetest.NewMapBytes()
	stores := []*tier.Encoded[string, string]{
		stringsIn(b, options{Compression: codec.Compression{MaxSize: 1 << 20}}),
		stringsIn(b, options{Compression: codec.Compression{MaxSize: 1 << 20}, Encryption: encryption(f, 1)}),
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, s := range stores {
			if err := s.Set(ctx, "key", entry(""), tier.Forever); err != nil {
				t.Fatal(err)
			}
			head := held(t, b, "key")[:envelopeSize]
			for transform := range 3 * 16 {
				head[3] = byte(transform)
				hold(t, b, "key", append(slices.Clone(head), payload...))
				e, err := s.Get(ctx, "key")
				if err != nil && !errors.Is(err, tier.ErrUnreadable) {
					t.Errorf("transform %#x: %v", transform, err)
				}
				if e != nil && (len(e.Value()) > max(len(payload), 1<<20) || s == stores[1]) {
					t.Errorf("transform %#x of %d bytes: a value of %d bytes", transform, len(payload), len(e.Value()))
				}
			}
		}
	})
}

func BenchmarkTransform(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		var text strings.Builder
		for i := 0; text.Len() < size; i++ {
			fmt.Fprintf(&text, `{"id":%d,"name":"product %x","stock":%d},`, i, i*7919, i%13)
		}
		value := text.String()[:size]
		for _, c := range []struct {
			name string
			o    options
		}{
			{"plain", options{}},
			{"s2", options{Compression: codec.Compression{Algorithm: codec.S2}}},
			{"zstd", options{Compression: codec.Compression{Algorithm: codec.Zstd}}},
			{"aes", options{Encryption: encryption(b, 1)}},
			{"s2+aes", options{Compression: codec.Compression{Algorithm: codec.S2}, Encryption: encryption(b, 1)}},
		} {
			store := storetest.NewMapBytes()
			s, e := stringsIn(store, c.o), entry(value)
			b.Run(fmt.Sprintf("set/%s/%dKiB", c.name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if err := s.Set(ctx, "key", e, tier.Forever); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(held(b, store, "key"))), "stored-B")
			})
			b.Run(fmt.Sprintf("get/%s/%dKiB", c.name, size>>10), func(b *testing.B) {
				if err := s.Set(ctx, "key", e, tier.Forever); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if got, err := s.Get(ctx, "key"); err != nil || got == nil {
						b.Fatal(got, err)
					}
				}
			})
		}
	}
}
