package trace_test

import (
	"strings"
	"testing"

	"github.com/terracecache/terrace/bench/internal/trace"
)

// rewrite makes of a CSV what tools and people make of it.
var rewrite = map[string]func(string) string{
	"as it is":   func(text string) string { return text },
	"semicolons": func(text string) string { return strings.ReplaceAll(text, ",", ";") },
	"tabs":       func(text string) string { return strings.ReplaceAll(text, ",", "\t") },
	"pipes":      func(text string) string { return strings.ReplaceAll(text, ",", "|") },
	"CRLF":       func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") },
	"some CRLF":  func(text string) string { return strings.Replace(text, "\n", "\r\n", 2) },
	"mark":       func(text string) string { return "\xef\xbb\xbf" + text },
	"blanks":     func(text string) string { return strings.ReplaceAll(text, ",", " , ") },
	"upper case": strings.ToUpper,
	"lower case": strings.ToLower,
	"quotes": func(text string) string {
		text = strings.ReplaceAll(strings.TrimSuffix(text, "\n"), ",", `","`)
		return `"` + strings.ReplaceAll(text, "\n", "\"\n\"") + `"` + "\n"
	},
	"all of it": func(text string) string {
		text = strings.ReplaceAll(strings.TrimSuffix(text, "\n"), ",", "\"\t\"")
		return "\xef\xbb\xbf\"" + strings.ReplaceAll(text, "\n", "\"\r\n\"") + "\"\r\n"
	},
	"no end":   func(text string) string { return strings.TrimSuffix(text, "\n") },
	"an end":   func(text string) string { return strings.ReplaceAll(text, "\n", ",\n") },
	"fraction": func(text string) string { return strings.ReplaceAll(text, "512", "512.0") },
	"empty":    func(text string) string { return "\n \n\n" + text + "\n" },
}

func TestDialectsOfCSV(t *testing.T) {
	for _, test := range []struct {
		format trace.Format
		input  string
		want   string
	}{
		{trace.Twitter, "7,a,2,512,1,get,0\n8,b,1,512,1,set,3600\n9,a,2,512,1,delete,0\n", "Ra/514 Wb/513 Da/514"},
		{trace.Twitter, "timestamp,anonymized key,key size,value size,client id,operation,TTL\n7,a,2,512,1,get,0\n8,b,1,512,1,set,3600\n", "Ra/514 Wb/513"},
		{trace.Twitter, "op,key,key_size,region,value_size\nget,a,2,x,512\nset,b,1,y,512\n", "Ra/514 Wb/513"},
		{trace.LibCacheSim, "time,op,obj_size,obj_id\n7,read,512,a\n7,2A,512,b\n8,28,512,a\n", "Ra/512 Wb/512 Ra/512"},
		{trace.LibCacheSim, "time,obj_id\n7,a\n7,b\n", "a b"},
		{trace.CacheLib, "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase\n7,a,3,GET,2,512,0,0,1\n7,b,3,SET_LEASE,1,512,0,0,1\n", "Ra/515 Ra/515 Wb/515"},
	} {
		for name, change := range rewrite {
			for _, format := range []trace.Format{test.format, ""} {
				input := change(test.input)
				r, err := trace.NewReader(strings.NewReader(input), trace.Options{Name: "x.csv", Format: format, Times: true})
				if err != nil {
					t.Errorf("%s, %s, told %q: %v", test.format, name, format, err)
					continue
				}
				got := strings.Join(told(r, true), " ")
				if r.Format() != test.format || got != test.want {
					t.Errorf("%s, %s, told %q: taken for %s: %s, want %s in\n%s", test.format, name, format, r.Format(), got, test.want, input)
				}
			}
		}
	}
}

// A key of a Twitter trace may have commas in it, as those are told by what is around it.
func TestKeyWithSeparators(t *testing.T) {
	r, err := trace.NewReader(strings.NewReader("7,a,b,,3,10,1,get,0\n7,a,b,3,10,1,get,0\n7,\"a,b\",3,10,1,get,0\n7,a,b,3,10,1,get,0,0\n"), trace.Options{Name: "x.csv"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(told(r, true), " "), "Ra/13 Rb/13 Rb/13 !4"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNumbersWithFractions(t *testing.T) {
	for input, want := range map[string]string{
		"1 a 512.0": "a/512", "1.00 a 512.": "a/512", "1 a 512.5": "!1", "1 a -512.0": "!1", "1 a .0": "!1", "1 a .": "!1",
		"1 a 512.0.0": "!1", "1 a 5e2": "!1", "1 a +512": "!1", "1 a 99999999999999999999.0": "!1",
	} {
		r, err := trace.NewReader(strings.NewReader(input), trace.Options{Format: trace.Sized})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(told(r, true), " "); got != want {
			t.Errorf("%q: %s, want %s", input, got, want)
		}
	}
}

func TestAddressesInUpperCase(t *testing.T) {
	r, err := trace.NewReader(strings.NewReader("\xef\xbb\xbfL 0X1F 1 1 5\r\nS 0x1f 1 1 6\r\nX 0x1f 1 1 6\r\n"), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(told(r, false), " "), "R31$5 W31$6 !3"; got != want || r.Format() != trace.Address {
		t.Errorf("%s: got %s, want %s", r.Format(), got, want)
	}
}

// Files that were put one behind the other each bring their header.
func TestHeaderThatComesAgain(t *testing.T) {
	r, err := trace.NewReader(strings.NewReader("time,id\n1,a\n\xef\xbb\xbftime,id\r\n2,a\nid,time\n"), trace.Options{Name: "x.csv"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(told(r, true), " "), "a a b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
