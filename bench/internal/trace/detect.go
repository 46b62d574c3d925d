package trace

import (
	"bytes"
	be "encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// detect tells the format by how the trace begins, and by its name where that leaves
// more than one.
func detect(name string, s *source) (Format, error) {
	head := s.beginning()
	if len(head) == 0 {
		if _, err := s.Peek(1); err != nil && !errors.Is(err, io.EOF) {
			return "", &Broken{err}
		}
	}
	name = unpackedName(name)
	if f, ok := named[filepath.Ext(name)]; ok {
		return f, nil
	}
	if isBinary(name, head) {
		return detectBinary(name, head)
	}
	return detectText(name, head)
}

// unpackedName is a file's name in lower case, without the end that says how it is packed.
func unpackedName(name string) string {
	name = strings.ToLower(filepath.ToSlash(name))
	for _, c := range compressions {
		for _, suffix := range c.suffix {
			name = strings.TrimSuffix(name, suffix)
		}
	}
	return name
}

// foreign are kinds of files that hold traces and are not read, by how they begin.
var foreign = []struct{ magic, kind string }{
	{"PK\x03\x04", "a zip archive"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive"},
	{"\x04\x22\x4d\x18", "packed with lz4"},
	{"\x1f\x9d", "packed with compress"},
	{"PAR1", "a Parquet file"},
}

// isNone returns why what begins so is no trace in whatever format, in none of text, or in
// none that is guessed.
func isNone(head []byte, text, guessed bool) error {
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.magic)) && bytes.IndexByte(head, 0) >= 0 {
			return fmt.Errorf("is %s: want it unpacked, or what is inside on stdin", f.kind)
		}
	}
	switch {
	case isTar(head):
		return errors.New("is a tar archive: unpack it, or give the file inside on stdin")
	case text && (bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff"))) && bytes.IndexByte(head, 0) >= 0, guessed && isWide(head):
		return errors.New("is text in UTF-16: want UTF-8")
	case len(head) >= oracleGeneralWidth && len(bytes.Trim(head, "\x00")) == 0:
		return fmt.Errorf("begins with %d NUL bytes, as a file does of which nothing was written yet", len(head))
	}
	return nil
}

// isWide reports whether nearly all pairs of bytes are a NUL and what ASCII text has, in one
// order, which numbers of some bytes are not.
func isWide(head []byte) bool {
	isText := func(c byte) bool { return c >= ' ' && c <= '~' || isSpace(c) }
	return max(
		share(head, 2, func(r []byte) bool { return r[0] == 0 && isText(r[1]) }),
		share(head, 2, func(r []byte) bool { return r[1] == 0 && isText(r[0]) })) > 0.9
}

// named are the formats that a file's name says whatever is in it: numbers of a few bytes
// may look like text.
var named = map[string]Format{".cache2k": Cache2k, ".corda": Corda, ".oraclegeneral": OracleGeneral, ".lirs": LIRS}

// isBinary reports whether the beginning has more control characters than a text with
// some faults.
func isBinary(name string, head []byte) bool {
	if slices.Contains([]string{".txt", ".csv", ".arc", ".lis"}, filepath.Ext(name)) {
		return false
	}
	control := 0
	for _, c := range head {
		if c < ' ' && !isSpace(c) {
			control++
		}
	}
	return 12*control > len(head) // of random bytes it is an eighth, of whole numbers more
}

func detectBinary(name string, head []byte) (Format, error) {
	for _, hint := range []struct {
		part string
		Format
	}{{"oraclegeneral", OracleGeneral}, {"corda", Corda}, {"vaultservice", Corda}, {"cache2k", Cache2k}} {
		if strings.Contains(name, hint.part) {
			return hint.Format, nil
		}
	}
	switch {
	case looksLikeOracleGeneral(head):
		return OracleGeneral, nil
	case share(head, 8, func(r []byte) bool { high := be.BigEndian.Uint32(r); return high == 0 || high == 1<<32-1 }) > 0.99, beginAlike(head):
		return Corda, nil
	case share(head, 4, func(r []byte) bool { return r[0] == 0 || r[0] == 0xff }) > 0.9:
		return Cache2k, nil
	}
	return "", fmt.Errorf("is binary, in a format that cannot be told: say with --format which of %s, %s and %s it is", Cache2k, Corda, OracleGeneral)
}

// looksLikeOracleGeneral asks for times that never go back and next accesses that come.
func looksLikeOracleGeneral(head []byte) bool {
	last := uint32(0)
	return share(head, oracleGeneralWidth, func(r []byte) bool {
		now, next := be.LittleEndian.Uint32(r), int64(be.LittleEndian.Uint64(r[16:]))
		good := now >= last && next >= -1 && (next < 1<<40 || next == math.MaxInt64) // which some have for never
		last = now
		return good
	}) == 1
}

// beginAlike reports whether numbers of 8 bytes differ in their last half alone, but for few. Of
// numbers of 4 bytes every second one is as various as the others.
func beginAlike(head []byte) bool {
	const width, most, times = 8, 4096, 8
	firsts, lasts := make(map[uint32]bool), make(map[uint32]bool)
	for n := 0; n < most && len(head) >= width; n, head = n+1, head[width:] {
		firsts[be.BigEndian.Uint32(head)] = true
		lasts[be.BigEndian.Uint32(head[4:])] = true
	}
	return len(lasts) >= times*max(1, len(firsts))
}

// share returns how many of the records are good, of 1; 0 where there is none.
func share(head []byte, width int, good func(record []byte) bool) float64 {
	n, of := 0, 0
	for ; len(head) >= width; head = head[width:] {
		of++
		if good(head[:width]) {
			n++
		}
	}
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

var decimal = regexp.MustCompile(`^[0-9]+$`)

// detectText takes the format of which half of the first lines are, and of several that which
// asks for most; of a trace with many faults that of which the most are.
func detectText(name string, head []byte) (Format, error) {
	if len(head) == longestLine && bytes.IndexByte(head, '\n') < 0 {
		return "", fmt.Errorf("begins with a line of more than %d bytes: say with --format what it is", longestLine)
	}
	var first [][]byte
	for line := range bytes.Lines(bytes.TrimPrefix(head, byteOrderMark)) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			first = append(first, line)
		}
		if len(first) == 64 {
			break
		}
	}
	if len(first) == 0 {
		return Plain, nil // of no request
	}
	if f := detectHeader(name, first[0]); f != "" {
		return f, nil
	}
	extension := filepath.Ext(name)
	if extension == ".arc" || extension == ".lis" {
		return ARC, nil
	}
	candidates := []struct {
		Format
		parser
	}{
		{Address, &address{}},
		{Address, &address{penalties: true}},
		{Twitter, &twitter{separated: separated{by: separatorOf(first[0])}}},
		{ARC, arc{}},
		{Sized, &sized{}},
		{LIRS, lirs{}},
		{Plain, &plain{}},
	}
	best, most := Format(""), 0
	for _, c := range candidates {
		if c.Format == LIRS && !saysLIRS(name, first) || c.Format == Plain && (extension == ".csv" || extension == ".tsv") && bytes.ContainsAny(first[0], separators) {
			continue
		}
		good := 0
		for _, line := range first {
			if c.parse(line, new(run)) == nil {
				good++
			}
		}
		if c.Format == Plain && best == Twitter && fewest*most >= len(first) {
			break // any line of CSV could be a key
		}
		if 2*good >= len(first) {
			return c.Format, nil
		}
		if good > most {
			best, most = c.Format, good
		}
	}
	if fewest*most >= len(first) && best != Plain {
		return best, nil
	}
	return "", errors.New("is text, in a format that cannot be told: say which with --format")
}

// fewest is of how many lines one must be of a format for it to be told where no format has
// half of them, and none has more.
const fewest = 6

// saysLIRS reports whether numbers are block numbers among which there may be marks, and
// not keys that happen to be numbers.
func saysLIRS(name string, first [][]byte) bool {
	numbers, marks := 0, 0
	for _, line := range first {
		switch {
		case string(line) == "*":
			marks++
		case decimal.Match(line):
			numbers++
		}
	}
	return numbers > 0 && (marks > 0 || strings.Contains(name, "lirs") || filepath.Ext(name) == ".trace" || filepath.Ext(name) == ".trc")
}

// detectHeader tells CSV formats by their first line.
func detectHeader(name string, line []byte) Format {
	fields, _ := firstFields(line)
	if len(fields) == 0 || len(fields) == 1 && filepath.Ext(name) != ".csv" {
		return ""
	}
	if slices.ContainsFunc(fields, decimal.Match) {
		return "" // a row, whose key may have any name
	}
	h := newHeader(fields)
	switch {
	case isTwitterHeader(h):
		return Twitter
	case h.column("key") >= 0 && h.column("op") >= 0 && h.column("op_count", "key_size", "cache_hits") >= 0:
		return CacheLib
	case h.column(keyColumns...) >= 0:
		return LibCacheSim
	}
	return ""
}
