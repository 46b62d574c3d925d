package trace

import (
	"errors"
	"fmt"
)

// cacheLib is CSV whose header names the columns, in any order: key, op, op_count, which
// says how often the row stands for itself, size, key_size, op_time in seconds, and others
// that do not matter here. An object's size is that of its key and value.
type cacheLib struct {
	hasher
	separated
	times                             bool // are asked for
	header                            header
	key, keySize, op, count, size, at int // columns; -1: there is none
}

func (c *cacheLib) begin(fields [][]byte) error {
	h := newHeader(fields)
	c.key, c.op, c.count = h.column("key"), h.column("op"), h.column("op_count")
	c.size, c.keySize = h.column("size"), h.column("key_size")
	if c.key < 0 || c.op < 0 {
		return errors.New("not CacheLib's header: want columns key and op")
	}
	c.at = h.column(timeColumns...)
	c.header = h
	return nil
}

func (c *cacheLib) fields() Fields { return Fields{Sizes: c.size >= 0, Ops: true, Times: c.at >= 0} }

func (c *cacheLib) parse(line []byte, to *run) error {
	f, err := c.split(line)
	if err != nil {
		return err
	}
	if len(f) != len(c.header) {
		return wantFields(len(f), fmt.Sprintf("the header's %d", len(c.header)))
	}
	if len(f[c.key]) == 0 {
		return errors.New("no key")
	}
	q := Request{Key: c.hash(f[c.key])}
	for _, column := range []struct {
		at   int
		what string
	}{{c.size, "size"}, {c.keySize, "key_size"}} {
		if c.size < 0 || column.at < 0 {
			continue
		}
		n, err := size(f[column.at], column.what)
		if err != nil {
			return err
		}
		q.Size += n
	}
	if c.times && c.at >= 0 {
		if q.Time, err = instant(f[c.at]); err != nil {
			return err
		}
	}
	switch string(f[c.op]) {
	case "GET", "GET_LEASE":
	case "SET", "SET_LEASE":
		q.Op = Write
	case "DELETE":
		q.Op = Delete
	default:
		return fmt.Errorf("operation %s: want GET, SET, DELETE, GET_LEASE or SET_LEASE", quoted(f[c.op]))
	}
	count := uint64(1)
	if c.count >= 0 {
		if count, err = repeats(f[c.count], "op_count"); err != nil {
			return err
		}
	}
	to.Request, to.left, to.stride = q, count, 0
	return nil
}
