package trace_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/terracecache/terrace/bench/internal/trace"
)

// told is what a reader yields, one item a request or fault. Keys that are text are told
// by who came first: a, b, c.
func told(r *trace.Reader, texts bool) (items []string) {
	names := make(map[uint64]string)
	for {
		var q trace.Request
		err := r.Next(&q)
		if malformed := (*trace.Malformed)(nil); errors.As(err, &malformed) {
			items = append(items, fmt.Sprintf("!%d", malformed.Number))
			continue
		}
		if errors.As(err, new(*trace.Broken)) {
			return append(items, "broken")
		}
		if errors.Is(err, io.EOF) {
			return items
		}
		if err != nil {
			return append(items, err.Error())
		}
		item := fmt.Sprint(int64(q.Key))
		if texts {
			if names[q.Key] == "" {
				names[q.Key] = string(rune('a' + len(names)))
			}
			item = names[q.Key]
		}
		f := r.Fields()
		if f.Ops {
			item = string("RWD"[q.Op]) + item
		}
		if f.Sizes {
			item += fmt.Sprintf("/%d", q.Size)
		}
		if f.Costs {
			item += fmt.Sprintf("$%v", q.Cost)
		}
		items = append(items, item)
	}
}

// records concatenates numbers of the given order.
func records(order binary.AppendByteOrder, fields ...any) string {
	var b []byte
	for _, f := range fields {
		switch f := f.(type) {
		case int32:
			b = order.AppendUint32(b, uint32(f))
		case int64:
			b = order.AppendUint64(b, uint64(f))
		default:
			panic(f)
		}
	}
	return string(b)
}

// inputs are small traces of each format, with the faults that occur.
var inputs = []struct {
	name   string // of the file, by which the format must be told too, unless told is false
	format trace.Format
	told   bool
	input  string
	want   string
	texts  bool
}{
	{"keys.txt", trace.Plain, true, "user:1\nuser:2\nuser:1", "a b a", true},
	{"keys", trace.Plain, true, "12\n13\n12\n", "a b a", true},
	{"keys.txt", trace.Plain, true, "\xef\xbb\xbfx\r\ny\r\n\r\n  x  \r\nno key\n\x00\nx\n", "a b a !5 !6 a", true},
	{"keys.txt", trace.Plain, true, "", "", true},
	{"keys.txt", trace.Plain, true, "\n\n", "", true},
	{"keys.txt", trace.Plain, false, "x\n" + strings.Repeat("y", 3<<20) + "\nx\n" + strings.Repeat("z", 2<<20), "a !2 a !4", true},
	{"x.trace", trace.LIRS, true, "7\r\n*\r\n8\r\n\r\n7\r\n", "7 8 7", false},
	{"x", trace.LIRS, true, "7\n*\n-8\n18446744073709551616\nx\n7\n9\n6", "7 !3 !4 !5 7 9 6", false},
	{"x.arc", trace.ARC, true, "230027 3 0 0\n5 1 0 1\n", "230027 230028 230029 5", false},
	{"x.lis", trace.ARC, true, "1 1000000000 0 0\n5 2 0\n5 0 0 1\n-5 2 0 1\n18446744073709551615 2 0 4\n5 2 x 1\n5 2 0 6", "!1 !2 !3 !4 !5 !6 5 6", false},
	{"x.bin", trace.Cache2k, true, records(binary.BigEndian, int32(5), int32(-6), int32(5)), "5 -6 5", false},
	{"cache2k/x", trace.Cache2k, true, records(binary.BigEndian, int32(0x12345678), int32(6)) + "\x00\x01", "305419896 6 !3", false},
	{"x.bin", trace.Corda, true, records(binary.BigEndian, int64(5), int64(-6), int64(5)) + "\x00", "5 -6 5 !4", false},
	{"corda.bin", trace.Corda, true, records(binary.BigEndian, int64(0x0123456789abcdef)), "81985529216486895", false},
	{"x.bin", trace.OracleGeneral, true, records(binary.LittleEndian, int32(1), int64(77), int32(10), int64(3), int32(2), int64(78), int32(11), int64(-1)) + "abc", "77/10 78/11 !3", false},
	{"x", trace.OracleGeneral, true, records(binary.LittleEndian, int32(1), int64(77), int32(10), int64(math.MaxInt64), int32(2), int64(78), int32(11), int64(-1)), "77/10 78/11", false},
	{"x.oracleGeneral", trace.OracleGeneral, true, records(binary.LittleEndian, int32(1), int64(77), int32(10), int64(-2), int32(0), int64(78), int32(-1), int64(-1)), "!1 78/4294967295", false},
	{"x", trace.Address, true, "l 0x1fffff50 1\ns 1FFFFF58 12\nm 0x1 1\nl 0x1\nl 0xg 1\nl 0x11111111111111111 1\nl 0x1fffff50 7\ns 0x1 0\n", "R536870736 W536870744 !3 !4 !5 !6 R536870736 W1", false},
	{"x", trace.Address, true, "l 0x10 1 2 300\ns 0x10 1 2 1.5\nl 0x10 1 2 -1\nl 0x10 1 2 NaN\ns 0x11 1 2 1e99\nl 0x12 1 2 3\nl 0x13 0 0 0", "R16$300 W16$1.5 !3 !4 !5 R18$3 R19$0", false},
	{"x.csv", trace.Twitter, true, "0,k1,2,100,3,get,0\n0,k2,2,0,3,set,3600\n1,k1,2,100,3,delete,0\n1,k1,2,100\n1,,2,100,3,get,0\n1,k,-2,1,3,get,0\n1,k,2,99999999999999999999,3,get,0\n1,k,1,1,1,fly,0\n1,k,1,1,1,get,0,0\n2,k1,2,100,3,gets,0\n2,k1,2,9,3,incr,0\n3,k3,2,9,3,cas,0\n3,k4,2,9,3,add,0", "Ra/102 Wb/2 Da/102 !4 !5 !6 !7 !8 !9 Ra/102 Wa/11 Wc/11 Wd/11", true},
	{"x.csv", trace.Twitter, true, "0,key,2,100,3,get,0\n0,id,2,100,3,get,0\n", "Ra/102 Rb/102", true},
	{"x.csv", trace.LibCacheSim, true, "version,time,op,size,lbn\n1,56,2a,42496,4293\n1,57,28,512,4293\n1,58,0x88,512,\"42,93\"\n1,58,zz,512,1\n1,58,28,-1,1\n1,58,28,512,\n1,58,28,512\n1,58,28,512,\"1\n1,59,read,1,4293", "Wa/42496 Ra/512 Rb/512 !5 !6 !7 !8 !9 Ra/1", true},
	{"x", trace.LibCacheSim, true, "\n# time, OBJ_ID\r\n1, 7\r\n2, 8\r\n3, 7", "a b a", true},
	{"x.csv", trace.LibCacheSim, true, "id\nx\ny\n", "a b", true},
	{"x.csv", trace.LibCacheSim, true, "version,time,op,size,lbn", "", true},
	{"x.csv", trace.CacheLib, true, "op_time,key,key_size,op,op_count,size,cache_hits,ttl\n1,k1,10,GET,3,90,1,0\n1,k1,10,SET,1,90,1,0\n1,k2,10,GET_LEASE,1,0,1,0\n1,k2,10,SET_LEASE,1,5,0,0\n1,k1,10,DELETE,1,0,0,0\n1,k1,10,GET,0,0,0,0\n1,k1,10,GET,99999999999,0,0,0\n1,k1,10,fly,1,0,0,0\n1,k1", "Ra/100 Ra/100 Ra/100 Wa/100 Rb/10 Wb/15 Da/10 !7 !8 !9 !10", true},
	{"x.csv", trace.CacheLib, true, "cache_hits,op_count,op,size,key\n0,2,GET,7,k1", "Ra/7 Ra/7", true},
	{"x.trace", trace.Sized, true, "1 0 68\n2 x 7454\n3 0 69\n4 0\n5 0 -1\nx 0 1\n7 0 99999999999999999\n8 x 0\n9 y 1\n9 z 1", "a/68 b/7454 a/69 !4 !5 !6 !7 b/0 c/1 d/1", true},
}

func TestFormats(t *testing.T) {
	have := make(map[trace.Format]bool)
	for i, test := range inputs {
		have[test.format] = true
		t.Run(fmt.Sprintf("%d-%s", i, test.format), func(t *testing.T) {
			for _, format := range []trace.Format{test.format, ""} {
				if format == "" && !test.told {
					continue
				}
				r, err := trace.NewReader(strings.NewReader(test.input), trace.Options{Name: test.name, Format: format})
				if err != nil {
					t.Fatalf("format %q: %v", format, err)
				}
				if got := r.Format(); got != test.format {
					t.Errorf("taken for %s", got)
				}
				if got := strings.Join(told(r, test.texts), " "); got != test.want {
					t.Errorf("got  %s\nwant %s", got, test.want)
				}
				r.Close()
			}
		})
	}
	for _, f := range trace.Formats {
		if !have[f] {
			t.Errorf("%s is not tested", f)
		}
	}
}

// Times are read where they are asked for; where not, what stands in their place matters to
// nobody.
func TestTimes(t *testing.T) {
	for _, test := range []struct {
		format        trace.Format
		input         string
		want, unasked string
		untimed       bool
	}{
		{trace.Twitter, "7,a,1,1,1,get,0\n6,a,1,1,1,get,0\nx,a,1,1,1,get,0\n", "7 6 !3", "7 6 !3", false},
		{trace.LibCacheSim, "clock_time,id\n1.5,a\n-2,a\n1e99,a\nNaN,a\n,a\n2024-01-01,a\n0x10,a\n", "1.5 -2 !4 !5 !6 !7 !8", "0 0 0 0 0 0 0", false},
		{trace.CacheLib, "key,op,op_time,op_count\na,GET,5,2\na,GET,?,1\n", "5 5 !3", "0 0 0", false},
		{trace.OracleGeneral, records(binary.LittleEndian, int32(-1), int64(77), int32(10), int64(-1)), "4.294967295e+09", "4.294967295e+09", false},
		{trace.LibCacheSim, "id,size\na,5\n", "0", "0", true},
		{trace.ARC, "1 1 0 0\n", "0", "0", true},
		{trace.Sized, "1 a 10\n", "0", "0", true},
	} {
		for _, asked := range []bool{true, false} {
			r, err := trace.NewReader(strings.NewReader(test.input), trace.Options{Format: test.format, Times: asked})
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Fields().Times; got == test.untimed {
				t.Errorf("%s: has times: %v", test.format, got)
			}
			var times []string
			for {
				var q trace.Request
				err := r.Next(&q)
				if malformed := (*trace.Malformed)(nil); errors.As(err, &malformed) {
					times = append(times, fmt.Sprintf("!%d", malformed.Number))
					continue
				}
				if err != nil {
					break
				}
				times = append(times, fmt.Sprint(q.Time))
			}
			want := test.unasked
			if asked {
				want = test.want
			}
			if got := strings.Join(times, " "); got != want {
				t.Errorf("%s, asked: %v: got %q, want %q", test.format, asked, got, want)
			}
		}
	}
}

// A trace with more faults than requests is told by these, if nothing else has more.
func TestFormatOfManyFaults(t *testing.T) {
	for _, test := range []struct {
		format      trace.Format
		input, want string
	}{
		{trace.Address, "l 0x1 1\nq 1 1\nl zz 1\nl 0x1\ns 0x2 1\n", "R1 !2 !3 !4 W2"},
		{trace.Sized, "1 a 5\n2 b -5\n3 c x\n4 d\n", "97/5 !2 !3 !4"},
		{trace.ARC, "1 1 0 0\n1 -1 0 0\n1 99999999 0 0\n-1 1 0 0\n", "1 !2 !3 !4"},
		{trace.Twitter, "0,k,2,100,3,get,0\n1,k,2,100\n1,,2,100,3,get,0\n1,k x,1\n0,k,2,100,3,set,0\n", "R97/102 !2 !3 !4 W97/102"},
	} {
		r, err := trace.NewReader(strings.NewReader(test.input), trace.Options{})
		if err != nil {
			t.Errorf("%s: %v", test.format, err)
			continue
		}
		if got := strings.Join(told(r, test.format == trace.Sized || test.format == trace.Twitter), " "); r.Format() != test.format || got != strings.NewReplacer("97", "a").Replace(test.want) {
			t.Errorf("%s: taken for %s: %s", test.format, r.Format(), got)
		}
	}
}

// A line that does not end where the first look does says the format all the same.
func TestFormatOfLongLines(t *testing.T) {
	long := strings.Repeat("k", 900_000)
	for input, want := range map[string]trace.Format{
		"0," + long + ",2,100,3,get,0\n1,k,2,100,3,get,0\n": trace.Twitter,
		"1 k 5\n2 " + long + " 6\n":                         trace.Sized,
		long:                                                trace.Plain,
	} {
		r, err := trace.NewReader(strings.NewReader(input), trace.Options{})
		if err != nil {
			t.Errorf("%s: %v", want, err)
		} else if r.Format() != want {
			t.Errorf("%s: taken for %s", want, r.Format())
		}
	}
	if r, err := trace.NewReader(strings.NewReader(long+long+"\n0,k,2,100,3,get,0\n"), trace.Options{}); err == nil {
		t.Errorf("a first line that is too long: taken for %s", r.Format())
	}
}

// Text that ends its lines with carriage returns alone has lines.
func TestCarriageReturns(t *testing.T) {
	for input, want := range map[string]string{
		"a\rb\ra":                  "a b a",
		"a\rb\ra\r":                "a b a",
		"time,id\r1,a\r2,b\r3,a\r": "a b a",
		"a\r":                      "a",
		"a\rb\r\nc\r\n":            "!1 a",
	} {
		for _, format := range []trace.Format{"", trace.Plain} {
			if format != "" && strings.Contains(input, ",") {
				continue
			}
			r, err := trace.NewReader(strings.NewReader(input), trace.Options{Format: format})
			if err != nil {
				t.Errorf("%q: %v", input, err)
			} else if got := strings.Join(told(r, true), " "); got != want {
				t.Errorf("%q: %s, want %s", input, got, want)
			}
		}
	}
}

// Numbers of 8 bytes that begin alike are not taken for twice as many of 4.
func TestWidthOfIntegers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, test := range []struct {
		name string
		want trace.Format
		key  func(i int) any
	}{
		{"with a base", trace.Corda, func(int) any { return 1<<40 + random.Int64N(300)*7919 }},
		{"milliseconds", trace.Corda, func(i int) any { return 1_796_000_000_000 + int64(i)*17 }},
		{"of some volumes", trace.Corda, func(int) any { return (1+random.Int64N(8))<<32 + random.Int64N(1<<30) }},
		{"negative with a base", trace.Corda, func(int) any { return -1<<40 + random.Int64N(5000) }},
		{"small", trace.Cache2k, func(int) any { return random.Int32N(5000) }},
		{"small, and few", trace.Cache2k, func(int) any { return 1 + random.Int32N(2) }},
		{"a scan", trace.Cache2k, func(i int) any { return int32(i + 1) }},
		{"two in turn", trace.Cache2k, func(i int) any { return int32(1 + i%2) }},
		{"twice each", trace.Cache2k, func(i int) any { return int32(1 + i/2) }},
	} {
		var fields []any
		for i := range 4000 {
			fields = append(fields, test.key(i))
		}
		r, err := trace.NewReader(strings.NewReader(records(binary.BigEndian, fields...)), trace.Options{Name: "x.bin"})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if got := r.Format(); got != test.want {
			t.Errorf("%s: taken for %s, want %s", test.name, got, test.want)
		}
	}
}

// Of what cannot be told nothing is guessed.
func TestFormatThatCannotBeTold(t *testing.T) {
	for name, input := range map[string]string{
		"x":         "\x7f\x12\x01\x93\x02\x03\x04\x99\x7f\x16\x00\x93\x02\x13\x04\x99",
		"x.txt":     "two words\nand more of them\n",
		"other.csv": "a,b,c\n1,2,3\n",
		"utf16.txt": "\xff\xfea\x00\n\x00",
		"utf16":     "\xfe\xff\x00a\x00\n",
		"utf16-be":  "\xfe\xff" + strings.Repeat("\x00k\x001\x00\r\x00\n", 99),
		"utf16-le":  "\xff\xfe" + strings.Repeat("k\x001\x00\n\x00", 99),
		"unmarked":  strings.Repeat("\x00k\x001\x00\n", 99),
		"x.zip":     "PK\x03\x04\x14\x00\x00",
		"x.lz4":     "\x04\x22\x4d\x18\x64\x40\xa7\x00",
		"unwritten": strings.Repeat("\x00", 1000),
		"x.gz":      "not packed\n",
		"x.tar":     strings.Repeat("\x00", 257) + "ustar\x0000" + strings.Repeat("\x00", 100),
	} {
		r, err := trace.NewReader(strings.NewReader(input), trace.Options{Name: name})
		if err == nil {
			t.Errorf("%s: taken for %s", name, r.Format())
			continue
		}
		if errors.As(err, new(*trace.Broken)) {
			t.Errorf("%s: %v: want an error that says what to do", name, err)
		}
	}
}

// Without its header a CSV's columns have no names, so that none of it can be read.
func TestHeaderThatIsNone(t *testing.T) {
	for _, f := range []trace.Format{trace.CacheLib, trace.LibCacheSim} {
		if _, err := trace.NewReader(strings.NewReader("1,2,3\n"), trace.Options{Format: f}); err == nil {
			t.Errorf("%s takes a row for a header", f)
		}
	}
}

// The seed changes what texts become, and nothing that is a number already.
func TestSeed(t *testing.T) {
	for format, changes := range map[trace.Format]bool{trace.Plain: true, trace.LIRS: false} {
		var keys []uint64
		for seed := range uint64(2) {
			r, err := trace.NewReader(strings.NewReader("17\n"), trace.Options{Format: format, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			var q trace.Request
			if err := r.Next(&q); err != nil {
				t.Fatal(err)
			}
			keys = append(keys, q.Key)
		}
		if got := keys[0] != keys[1]; got != changes {
			t.Errorf("%s: keys %v by two seeds", format, keys)
		}
	}
}

// FuzzReader reads anything as any format. It must come to an end, and say of each fault
// where it is, in order.
func FuzzReader(f *testing.F) {
	for _, test := range inputs {
		if len(test.input) < 1000 {
			f.Add(uint8(slices.Index(trace.Formats, test.format)), test.name, []byte(test.input))
			f.Add(uint8(len(trace.Formats)), test.name, []byte(test.input))
		}
	}
	for name, packed := range archives(f, []byte("1\n2\n1\n3\n")) {
		f.Add(uint8(len(trace.Formats)), name, packed)
	}
	f.Fuzz(func(t *testing.T, format uint8, name string, input []byte) {
		o := trace.Options{Name: name, Times: len(input)%2 == 0}
		if i := int(format) % (len(trace.Formats) + 1); i < len(trace.Formats) {
			o.Format = trace.Formats[i]
		}
		r, err := trace.NewReader(strings.NewReader(string(input)), o)
		if err != nil {
			return
		}
		defer r.Close()
		last := int64(0)
		for range 100_000 { // a line of ARC may stand for many
			var q trace.Request
			err := r.Next(&q)
			malformed := (*trace.Malformed)(nil)
			switch {
			case err == nil:
				if q.Size < 0 || !(q.Cost >= 0) || math.IsNaN(q.Time) || math.IsInf(q.Time, 0) || q.Op > trace.Delete {
					t.Fatalf("%+v", q)
				}
			case errors.As(err, &malformed):
				if malformed.Number <= last {
					t.Fatalf("%v after %d", err, last)
				}
				last = malformed.Number
			default:
				if again := r.Next(&q); !errors.Is(again, err) {
					t.Fatalf("%v, then %v", err, again)
				}
				return
			}
		}
	})
}

// A name that ends in a format's says it, though the bytes look like another.
func TestFormatByName(t *testing.T) {
	for _, test := range []struct {
		name, input string
		want        []string
	}{
		{"keys.cache2k", records(binary.BigEndian, int32(-1), int32(-2)), []string{"-1", "-2"}},
		{"keys.CACHE2K", "ab\r\nabcd", []string{"1633815818", "1633837924"}},
		{"keys.cache2k", "ab\rxabcd", []string{"1633815928", "1633837924"}},
		{"keys.corda", "abcdefgh", []string{"7017280452245743464"}},
		{"marks.lirs", "*\n*\n", nil},
		{"marks.lirs", "7\n*\n7\n", []string{"7", "7"}},
	} {
		r, err := trace.NewReader(strings.NewReader(test.input), trace.Options{Name: test.name})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if got := told(r, false); !slices.Equal(got, test.want) {
			t.Errorf("%s of %q: got %q, want %q", test.name, test.input, got, test.want)
		}
	}
}

func TestLibCacheSimHeaders(t *testing.T) {
	for _, key := range []string{"lbn", "obj_id", "Obj ID", "objId", "object_id", "object", "id", "key"} {
		input := "# time, " + key + ", size, next_access_vtime\n1.5, 42, 512, -1\n1.5, 43, 512, -1\n2.5, 42, 512, -1\n"
		r, err := trace.NewReader(strings.NewReader(input), trace.Options{Name: "blocks.csv"})
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if got, want := told(r, true), []string{"a/512", "b/512", "a/512"}; r.Format() != trace.LibCacheSim || !slices.Equal(got, want) {
			t.Errorf("%s: %s with %q, want %s with %q", key, r.Format(), got, trace.LibCacheSim, want)
		}
	}
}
