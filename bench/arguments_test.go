package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A word of a command is one line of printable text, whatever the name of a file is, and a
// shell reads that name from it.
func TestQuoted(t *testing.T) {
	for _, test := range []struct{ word, want string }{
		{"", `''`},
		{"l1:10,l2:20", "l1:10,l2:20"},
		{"p3.arc.gz", "p3.arc.gz"},
		{"two words", "'two words'"},
		{"Ärger", "'Ärger'"},
		{"it's $HOME", `'it'\''s $HOME'`},
		{`back\slash`, `'back\slash'`},
		{"a\nb'c\\", `$'a\012b\'c\\'`},
		{"tab\t1", `$'tab\0111'`},
		{"\xff\xfe.txt", `$'\377\376.txt'`},
		{"next\u0085line", `$'next\302\205line'`},
		{"\u2028\ufeff", `$'\342\200\250\357\273\277'`},
	} {
		if got := quoted(test.word); got != test.want {
			t.Errorf("%q: got %s, want %s", test.word, got, test.want)
		}
	}
}

// What is advised for a trace is a document that validate accepts, and its command one that
// runs, whatever the name of the trace is.
func TestAdviseOfAnyName(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, test := range []struct{ name, want string }{
		{"- x: {\"${HOME}#.txt", `'./- x: {"${HOME}#.txt'`},
		{"./-", `./-`},
		{"a\nb\u0085c\x01.txt", `$'a\012b\302\205c\001.txt'`},
	} {
		if err := os.WriteFile(test.name, []byte("a\nb\na\nc\nb\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		document := filepath.Join(t.TempDir(), "advised.yaml")
		code, _, stderr := bench(t.Context(), "advise", "--memory", "100KiB", "--policies", "lru", "--config", document, "--", test.name)
		if code != exitOK {
			t.Fatalf("%q: exit code %d, stderr %q", test.name, code, stderr)
		}
		if code, _, stderr = bench(t.Context(), "validate", document); code != exitOK {
			t.Errorf("%q: validate: exit code %d, stderr %q", test.name, code, stderr)
		}
		if text := readFile(t, document); !strings.Contains(text, " "+test.want+"\ncaches:") {
			t.Errorf("%q: want a command that ends in %s in\n%s", test.name, test.want, text)
		}
	}
}
