package memcached

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"time"

	"github.com/terracecache/terrace/backends/internal/gather"
)

// reader asks a server for items by the text protocol's get, over a connection of its own. Reads
// are most of what a cache does, and gomemcache's make a map, an item and a text for each key, and
// a goroutine. It is used by one goroutine at a time.
type reader struct {
	conn    net.Conn
	timeout time.Duration
	in      *bufio.Reader
	request []byte
}

// readBuffer holds the answers to a few dozen small values.
const readBuffer = 16 << 10

// wholly is the size up to which memory for a value is taken as its head says. For a larger one it
// is taken as the value comes, in case that it does not.
const wholly = 1 << 20

// What a server sends that keeps to no protocol. Nothing of it is quoted, as it may be of a value.
var (
	errNotAsked = errors.New("a value came for a key that was not asked for, or a second one")
	errNoEnd    = errors.New("a value does not end where its head says")
	errMore     = errors.New("more came than an answer")
)

func newReader(conn net.Conn, timeout time.Duration) *reader {
	return &reader{conn: conn, timeout: timeout, in: bufio.NewReaderSize(conn, readBuffer)}
}

// read asks for keys, which are all different, and sets the answers: where there is an item that,
// and else nothing. After an error, which may be a [ReplyError], the connection is of no more use.
func (r *reader) read(keys []string, answers []gather.Answer[item]) error {
	clear(answers)
	r.extend()
	r.request = append(r.request[:0], "get"...)
	for _, key := range keys {
		r.request = append(append(r.request, ' '), key...)
	}
	r.request = append(r.request, "\r\n"...)
	if _, err := r.conn.Write(r.request); err != nil {
		return err
	}
	for next := 0; ; next++ {
		r.extend()
		line, err := r.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if string(line) == "END\r\n" {
			if r.in.Buffered() > 0 {
				return errMore
			}
			return nil
		}
		key, flags, size, ok := parseHead(line)
		if !ok {
			return replyOf(string(line))
		}
		// They come in the order of the keys, but from some proxies.
		place := placeOf(key, keys, next)
		if place < 0 || answers[place].Value.value != nil {
			return errNotAsked
		}
		value, err := r.value(size)
		if err != nil {
			return err
		}
		answers[place].Value = item{value, flags}
		next = place
	}
}

func (r *reader) extend() { _ = r.conn.SetDeadline(time.Now().Add(r.timeout)) }

// placeOf returns the place of the key, for which it looks from next on, or -1.
func placeOf(key []byte, keys []string, next int) int {
	for i := next; i < len(keys); i++ {
		if keys[i] == string(key) {
			return i
		}
	}
	for i := range min(next, len(keys)) {
		if keys[i] == string(key) {
			return i
		}
	}
	return -1
}

// value reads a value and the end of its line.
func (r *reader) value(size int) ([]byte, error) {
	whole := size + len("\r\n")
	value := make([]byte, 0, min(whole, wholly))
	for {
		n, err := io.ReadFull(r.in, value[len(value):cap(value)])
		value = value[:len(value)+n]
		switch {
		case err != nil:
			return nil, err
		case len(value) < whole:
			value = append(make([]byte, 0, min(whole, 2*cap(value))), value...)
		case value[size] != '\r' || value[size+1] != '\n':
			return nil, errNoEnd
		default:
			return value[:size:size], nil
		}
	}
}

// parseHead parses "VALUE key flags size[ cas]\r\n".
func parseHead(line []byte) (key []byte, flags uint32, size int, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("VALUE "))
	if !ok {
		return nil, 0, 0, false
	}
	rest, ok = bytes.CutSuffix(rest, []byte("\r\n"))
	key, rest, more := bytes.Cut(rest, []byte(" "))
	first, rest, more2 := bytes.Cut(rest, []byte(" "))
	second, _, _ := bytes.Cut(rest, []byte(" "))
	f, fOK := parseNumber(first)
	n, nOK := parseNumber(second)
	return key, f, int(n), ok && more && more2 && fOK && nOK
}

// parseNumber parses 32 bits in decimal.
func parseNumber(digits []byte) (n uint32, ok bool) {
	sum := uint64(0)
	for _, d := range digits {
		if d < '0' || d > '9' || sum > 1<<32 {
			return 0, false
		}
		sum = sum*10 + uint64(d-'0')
	}
	return uint32(sum), len(digits) > 0 && sum < 1<<32
}
