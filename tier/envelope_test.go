package tier

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

const (
	goldenKey    = "sku-1"
	goldenSchema = "json example.com/shop.Product"
)

// goldenClocks are those of writer and reader: 14 November 2023, 22:13:20.5 UTC.
var goldenClocks = clocks{mono: 1_000_000_000_000, wall: 1_700_000_000_500_000_000}

// seal makes whole what appendEnvelope begins, with a nonce that does not change.
func seal(e envelope, key, schema, payload string, now clocks) []byte {
	b := appendEnvelope(nil, e, schemaSum(schema), now)
	binary.BigEndian.PutUint32(b[4:], 0x01020304)
	b = append(b, payload...)
	sealEnvelope(b, key)
	return b
}

// goldens are the worked examples of docs/wire-format.md.
var goldens = []struct {
	name    string
	e       envelope
	payload string
	want    string
}{
	{
		name: "value",
		e: envelope{meta: Meta{
			LoadedAt:    goldenClocks.mono.Add(-500 * time.Millisecond),
			FreshUntil:  goldenClocks.mono.Add(-500 * time.Millisecond).Add(5 * time.Minute),
			UsableUntil: goldenClocks.mono.Add(-500 * time.Millisecond).Add(time.Hour),
			LoadTime:    42_500 * time.Microsecond,
		}},
		payload: `{"ID":1}`,
		want: `
c7 01 00 00 01 02 03 04 17 97 9c fe 36 2a 00 00
72 65 61 48 fb 96 11 66 00 00 00 45 d9 64 b8 00
00 00 03 46 30 b8 a0 00 00 00 00 00 02 88 7f a0
7b 22 49 44 22 3a 31 7d`,
	},
	{
		name: "absent, tags, validator",
		e: envelope{meta: Meta{
			LoadedAt:    goldenClocks.mono,
			FreshUntil:  goldenClocks.mono.Add(5 * time.Second),
			UsableUntil: goldenClocks.mono.Add(5 * time.Second),
			LoadTime:    time.Millisecond,
			Absent:      true,
			Tags:        []string{"shop", "sale"},
			Validator:   `"v1"`,
		}},
		want: `
c7 01 0d 00 01 02 03 04 17 97 9c fe 53 f7 65 00
72 65 61 48 5c eb 2d 0f 00 00 00 01 2a 05 f2 00
00 00 00 01 2a 05 f2 00 00 00 00 00 00 0f 42 40
02 04 73 68 6f 70 04 73 61 6c 65 04 22 76 31 22`,
	},
	{
		name: "nil, endless",
		e:    envelope{isNil: true, meta: Meta{LoadedAt: goldenClocks.mono, FreshUntil: Never, UsableUntil: Never}},
		want: `
c7 01 02 00 01 02 03 04 17 97 9c fe 53 f7 65 00
72 65 61 48 36 9e 72 4f 7f ff ff ff ff ff ff ff
7f ff ff ff ff ff ff ff 00 00 00 00 00 00 00 00`,
	},
	{
		name: "tombstone",
		e: envelope{tombstone: true, meta: Meta{
			LoadedAt: goldenClocks.mono, FreshUntil: goldenClocks.mono, UsableUntil: goldenClocks.mono.Add(10 * time.Second),
		}},
		want: `
c7 01 10 00 01 02 03 04 17 97 9c fe 53 f7 65 00
72 65 61 48 b6 e2 5d 91 00 00 00 00 00 00 00 00
00 00 00 02 54 0b e4 00 00 00 00 00 00 00 00 00`,
	},
}

func dump(b []byte) string {
	var s strings.Builder
	for i, x := range b {
		switch {
		case i == 0:
		case i%16 == 0:
			s.WriteByte('\n')
		default:
			s.WriteByte(' ')
		}
		s.WriteString(hex.EncodeToString([]byte{x}))
	}
	return s.String()
}

// What is written must not change: other processes, and other languages, read it.
func TestGolden(t *testing.T) {
	doc, err := os.ReadFile("../docs/wire-format.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range goldens {
		b := seal(g.e, goldenKey, goldenSchema, g.payload, goldenClocks)
		if got, want := dump(b), strings.TrimSpace(g.want); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", g.name, got, want)
		}
		if !strings.Contains(string(doc), dump(b)) {
			t.Errorf("%s: docs/wire-format.md does not show these bytes", g.name)
		}
		got, payload, err := parseEnvelope(b, goldenKey, schemaSum(goldenSchema), goldenClocks, transforms{})
		want := g.e
		if want.tombstone {
			want = envelope{tombstone: true} // its times are for its reader of no use
		}
		if err != nil || !reflect.DeepEqual(got, want) || string(payload) != g.payload {
			t.Errorf("%s: parsed %+v, payload %q, %v; want %+v, %q", g.name, got, payload, err, want, g.payload)
		}
	}
}

func TestOverhead(t *testing.T) {
	b := seal(goldens[0].e, goldenKey, goldenSchema, goldens[0].payload, goldenClocks)
	if got := len(b) - len(goldens[0].payload); got > 48 {
		t.Errorf("the envelope takes %d bytes, want at most 48", got)
	}
}

// TestC27SubSecond: all times cross with nanoseconds, however odd.
func TestC27SubSecond(t *testing.T) {
	for _, d := range []time.Duration{1, 999, 999_999, 123_456_789, time.Second - 1, time.Hour, Forever} {
		e := envelope{meta: Meta{
			LoadedAt:    goldenClocks.mono.Add(-min(d, time.Hour)),
			FreshUntil:  goldenClocks.mono.Add(d),
			UsableUntil: goldenClocks.mono.Add(d).Add(d),
			LoadTime:    d,
		}}
		b := seal(e, "key", "schema", "", goldenClocks)
		got, _, err := parseEnvelope(b, "key", schemaSum("schema"), goldenClocks, transforms{})
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%v: got %+v, %v, want %+v", d, got, err, e)
		}
	}
}

// A reader elsewhere has another monotonic clock and a wall clock that is off.
func TestSkewIsBounded(t *testing.T) {
	const life = 30 * time.Minute
	written := clocks{mono: 5_000, wall: 1_700_000_000_000_000_000}
	e := envelope{meta: Meta{LoadedAt: written.mono, FreshUntil: written.mono.Add(time.Minute), UsableUntil: written.mono.Add(life)}}
	b := seal(e, "key", "schema", "", written)
	for _, skew := range []time.Duration{
		0, 1, -1, MaxSkew, -MaxSkew, -MaxSkew - 1, time.Minute, -time.Minute, life, -life, 24 * time.Hour, -24 * time.Hour, 50 * 365 * 24 * time.Hour, -50 * 365 * 24 * time.Hour,
	} {
		reader := clocks{mono: 777_000_000_000_000, wall: written.wall + int64(skew)}
		got, _, err := parseEnvelope(b, "key", schemaSum("schema"), reader, transforms{})
		if skew < -MaxSkew {
			if got := unreadableReason(err); got != "clock" {
				t.Errorf("skew %v: got %v, want an unreadable clock", skew, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("skew %v: %v", skew, err)
		}
		// Ahead, the entry seems as much older; behind, it seems new, never newer.
		want := life - max(0, skew)
		if left := got.meta.UsableUntil.Sub(reader.mono); left != want {
			t.Errorf("skew %v: %v left, want %v", skew, left, want)
		}
		if got.meta.LoadedAt > reader.mono {
			t.Errorf("skew %v: loaded %v from now", skew, got.meta.LoadedAt.Sub(reader.mono))
		}
		if d := got.meta.FreshUntil.Sub(got.meta.LoadedAt); d != time.Minute {
			t.Errorf("skew %v: fresh for %v, want 1m", skew, d)
		}
	}
}

// Whatever times an envelope holds, its reader gets no more life than it was
// written with, and nothing wraps round.
func TestTimesNeverLengthenALife(t *testing.T) {
	odd := func() int64 {
		return []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64, int64(rand.Uint64()), rand.Int64N(1 << 60)}[rand.IntN(9)]
	}
	for range 100_000 {
		loaded, usable := odd(), odd()
		now := clocks{mono: Instant(rand.Int64N(1 << 62)), wall: rand.Int64N(1 << 62)}
		b := seal(envelope{}, "key", "schema", "", now)
		binary.BigEndian.PutUint64(b[8:], uint64(loaded))
		binary.BigEndian.PutUint64(b[32:], uint64(usable))
		sealEnvelope(b, "key")
		e, _, err := parseEnvelope(b, "key", schemaSum("schema"), now, transforms{})
		if unreadableReason(err) == "clock" {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.meta.LoadedAt > now.mono {
			t.Fatalf("loaded %d, now %+v: LoadedAt %d", loaded, now, e.meta.LoadedAt)
		}
		if left := e.meta.UsableUntil.Sub(now.mono); left > time.Duration(usable) && now.mono.Add(time.Duration(usable)) != Never {
			t.Fatalf("loaded %d, usable for %d, now %+v: %d left", loaded, usable, now, left)
		}
	}
}

func unreadableReason(err error) string {
	var u *UnreadableError
	if !errors.As(err, &u) || !errors.Is(err, ErrUnreadable) {
		return ""
	}
	return u.Reason
}

// Any single bit that is flipped, and any byte that is missing or too many, makes
// an envelope unreadable.
func TestDamageIsNoticed(t *testing.T) {
	for _, g := range goldens {
		good := seal(g.e, goldenKey, goldenSchema, g.payload, goldenClocks)
		parse := func(b []byte) error {
			_, _, err := parseEnvelope(b, goldenKey, schemaSum(goldenSchema), goldenClocks, transforms{})
			return err
		}
		for i := range good {
			for bit := range 8 {
				b := bytes.Clone(good)
				b[i] ^= 1 << bit
				if unreadableReason(parse(b)) == "" {
					t.Errorf("%s: bit %d of byte %d flipped: readable", g.name, bit, i)
				}
			}
			if unreadableReason(parse(good[:i])) == "" {
				t.Errorf("%s: the first %d bytes are readable", g.name, i)
			}
		}
		if unreadableReason(parse(append(bytes.Clone(good), 0))) == "" {
			t.Errorf("%s: readable with a byte more", g.name)
		}
	}
}

func TestUnreadableReasons(t *testing.T) {
	good := seal(goldens[0].e, goldenKey, goldenSchema, goldens[0].payload, goldenClocks)
	with := func(at int, x byte) []byte {
		b := bytes.Clone(good)
		b[at] = x
		sealEnvelope(b, goldenKey)
		return b
	}
	for _, c := range []struct {
		b                 []byte
		key, schema, want string
	}{
		{nil, goldenKey, goldenSchema, "short"},
		{good[:47], goldenKey, goldenSchema, "short"},
		{with(0, '{'), goldenKey, goldenSchema, "magic"},
		{with(1, 2), goldenKey, goldenSchema, "version"},
		{with(2, 0x20), goldenKey, goldenSchema, "flags"},
		{with(2, 0x80), goldenKey, goldenSchema, "flags"},
		{with(3, 1), goldenKey, goldenSchema, "transform"},
		{with(2, flagTags), goldenKey, goldenSchema, "lengths"},
		{with(2, flagValidator), goldenKey, goldenSchema, "lengths"},
		{good, "sku-2", goldenSchema, "checksum"},
		{good, "", goldenSchema, "checksum"},
		{good, goldenKey, "msgpack example.com/shop.Product", "schema"},
		{good, goldenKey, "json example.com/shop.Customer", "schema"},
	} {
		e, payload, err := parseEnvelope(c.b, c.key, schemaSum(c.schema), goldenClocks, transforms{})
		if got := unreadableReason(err); got != c.want {
			t.Errorf("%d bytes for %q, %q: got reason %q (%v), want %q", len(c.b), c.key, c.schema, got, err, c.want)
		}
		if payload != nil || !reflect.DeepEqual(e, envelope{}) {
			t.Errorf("%s: got %+v and payload %q with an error", c.want, e, payload)
		}
	}
}

// Counts and lengths that a good checksum covers are not believed either.
func TestNoAllocationForFalseLengths(t *testing.T) {
	huge := binary.AppendUvarint(nil, math.MaxUint64)
	large := binary.AppendUvarint(nil, 1<<40)
	for _, c := range []struct {
		name string
		flag byte
		tail []byte
	}{
		{"tag count", flagTags, huge},
		{"tag count", flagTags, large},
		{"tag length", flagTags, append([]byte{1}, huge...)},
		{"tag length", flagTags, append([]byte{1}, large...)},
		{"tag missing", flagTags, []byte{2, 1, 'a'}},
		{"endless count", flagTags, bytes.Repeat([]byte{0x80}, 20)},
		{"no count", flagTags, nil},
		{"validator length", flagValidator, huge},
		{"validator length", flagValidator, large},
		{"no validator", flagValidator, nil},
		{"no validator after tags", flagTags | flagValidator, []byte{1, 1, 'a'}},
	} {
		b := seal(envelope{}, "key", "schema", string(c.tail), goldenClocks)
		b[2] = c.flag
		sealEnvelope(b, "key")
		var err error
		if n := testing.AllocsPerRun(1, func() { _, _, err = parseEnvelope(b, "key", schemaSum("schema"), goldenClocks, transforms{}) }); n > 5 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
		if unreadableReason(err) != "lengths" {
			t.Errorf("%s: got error %v, want one about lengths", c.name, err)
		}
	}
}

func FuzzParseEnvelope(f *testing.F) {
	for _, g := range goldens {
		f.Add(seal(g.e, goldenKey, goldenSchema, g.payload, goldenClocks), goldenKey)
	}
	f.Add([]byte{}, "")
	f.Fuzz(func(t *testing.T, b []byte, key string) {
		now := readClocks()
		if _, _, err := parseEnvelope(b, key, schemaSum(goldenSchema), now, transforms{}); err != nil && unreadableReason(err) == "" {
			t.Errorf("got error %v, want an UnreadableError", err)
		}
		// Past the checksum too.
		if len(b) >= envelopeSize {
			b = bytes.Clone(b)
			b[0], b[1], b[3] = envelopeMagic, envelopeVersion, 0
			b[2] &= flagsKnown
			binary.BigEndian.PutUint32(b[16:], schemaSum(goldenSchema))
			sealEnvelope(b, key)
			e, payload, err := parseEnvelope(b, key, schemaSum(goldenSchema), now, transforms{})
			if err == nil && (len(payload) > len(b)-envelopeSize || e.meta.LoadedAt > now.mono) {
				t.Errorf("parsed %+v with a payload of %d bytes out of %d", e, len(payload), len(b))
			}
		}
	})
}

func TestVersionsDiffer(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		b := appendEnvelope(nil, goldens[0].e, 1, goldenClocks)
		head := b[:HeadSize]
		if seen[string(head)] {
			t.Fatal("two writes of one entry have one version")
		}
		seen[string(head)] = true
	}
}

func TestVersionTime(t *testing.T) {
	for _, g := range goldens {
		b := seal(g.e, goldenKey, goldenSchema, g.payload, goldenClocks)
		if got, ok := headTime(b[:HeadSize], goldenClocks); !ok || got != g.e.meta.LoadedAt {
			t.Errorf("%s: %d, %v, want %d", g.name, got, ok, g.e.meta.LoadedAt)
		}
	}
	for _, head := range []string{"", "short", "sixteen bytes ok", "\xc7\x02\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c"} {
		if got, ok := headTime([]byte(head), goldenClocks); ok {
			t.Errorf("%q: %d, want none", head, got)
		}
	}
}
