package sieve_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mikelolasagasti/xz"
)

// trace is who was asked for, one after the other.
type trace struct {
	name     string
	keys     []int // numbered from 0 as they come
	distinct int
}

// enough is where a trace is cut: p3 goes on for long, and so does loop, which only
// repeats itself.
const enough = 1_500_000

// traces reads the public traces, which lie beside the project; without them the test
// is skipped.
func traces(t *testing.T) []trace {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared", "traces")
	if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the public cache traces are not there: no folder %s", root)
	}
	var all []trace
	for _, kind := range []struct {
		pattern string
		read    func(data []byte, ask func(key string)) error
	}{
		{"lirs/*.gz", readLIRS},
		{"cache2k/*.xz", readCache2k},
		{"sized/*.xz", readSized},
		{"p3.arc.gz", readARC},
	} {
		if kind.pattern == "p3.arc.gz" && (testing.Short() || raceEnabled) {
			continue // more accesses than all others together
		}
		files, err := filepath.Glob(filepath.Join(root, kind.pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, %v", kind.pattern, err)
		}
		for _, file := range files {
			data, err := unpack(file)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			tr := trace{name: strings.SplitN(filepath.Base(file), ".", 2)[0]}
			numbers := make(map[string]int)
			if err := kind.read(data, func(key string) {
				n, known := numbers[key]
				if !known {
					n = len(numbers)
					numbers[key] = n
				}
				tr.keys = append(tr.keys, n)
			}); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if raceEnabled {
				tr.keys = tr.keys[:min(len(tr.keys), enough/30)]
			}
			tr.distinct = len(numbers)
			all = append(all, tr)
		}
	}
	return all
}

func unpack(file string) ([]byte, error) {
	packed, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r io.Reader
	if filepath.Ext(file) == ".xz" {
		r, err = xz.NewReader(bytes.NewReader(packed), 0)
	} else {
		r, err = gzip.NewReader(bytes.NewReader(packed))
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// readLIRS reads a key a line; a star is a mark.
func readLIRS(data []byte, ask func(string)) error {
	for line := range strings.Lines(string(data)) {
		if key := strings.TrimSpace(line); key != "" && key != "*" {
			ask(key)
		}
	}
	return nil
}

// readCache2k reads keys of four bytes, the highest first.
func readCache2k(data []byte, ask func(string)) error {
	for ; len(data) >= 4; data = data[4:] {
		ask(fmt.Sprint(int32(binary.BigEndian.Uint32(data))))
	}
	if len(data) > 0 {
		return fmt.Errorf("%d bytes are left over", len(data))
	}
	return nil
}

// readSized reads lines of a number, the key and a size.
func readSized(data []byte, ask func(string)) error {
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return fmt.Errorf("line %q", line)
		}
		ask(fields[1])
	}
	return nil
}

// readARC reads lines of the first key, how many follow each other, and two numbers
// that say nothing here. It stops where the rest would only take time.
func readARC(data []byte, ask func(string)) error {
	lines := bufio.NewScanner(bytes.NewReader(data))
	for asked := 0; asked < enough && lines.Scan(); {
		var first, count int
		if _, err := fmt.Sscan(lines.Text(), &first, &count); err != nil {
			return fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		for key := first; key < first+count && asked < enough; key++ {
			ask(fmt.Sprint(key))
			asked++
		}
	}
	return lines.Err()
}
