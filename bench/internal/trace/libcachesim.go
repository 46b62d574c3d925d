package trace

import (
	"errors"
	"fmt"
	"strings"
)

// libCacheSim is CSV whose header names the columns: a key (lbn, obj_id, id or key), and
// perhaps a size, a time in seconds and an operation, which may be a SCSI code. What else
// there is does not matter here.
type libCacheSim struct {
	hasher
	separated
	times             bool // are asked for
	header            header
	key, size, op, at int // columns; -1: there is none
}

// keyColumns are the names under which keys go.
var keyColumns = []string{"lbn", "obj_id", "object", "id", "key"}

func (l *libCacheSim) begin(fields [][]byte) error {
	h := newHeader(fields)
	l.key = h.column(keyColumns...)
	if l.key < 0 {
		return fmt.Errorf("a header without a key: want a column %s", strings.Join(keyColumns, ", "))
	}
	l.size = h.column("size", "obj_size", "object_size")
	l.op = h.column("op", "operation", "req_op")
	l.at = h.column(timeColumns...)
	l.header = h
	return nil
}

func (l *libCacheSim) fields() Fields {
	return Fields{Sizes: l.size >= 0, Ops: l.op >= 0, Times: l.at >= 0}
}

func (l *libCacheSim) parse(line []byte, to *run) error {
	f, err := l.split(line)
	if err != nil {
		return err
	}
	if len(f) != len(l.header) {
		return wantFields(len(f), fmt.Sprintf("the header's %d", len(l.header)))
	}
	if len(f[l.key]) == 0 {
		return errors.New("no key")
	}
	q := Request{Key: l.hash(f[l.key])}
	if l.size >= 0 {
		if q.Size, err = size(f[l.size], "size"); err != nil {
			return err
		}
	}
	if l.times && l.at >= 0 {
		if q.Time, err = instant(f[l.at]); err != nil {
			return err
		}
	}
	if l.op >= 0 {
		if q.Op, err = blockOp(f[l.op]); err != nil {
			return err
		}
	}
	return to.one(q)
}

// blockOp reads an operation: a name, or a hexadecimal SCSI code.
func blockOp(name []byte) (Op, error) {
	switch strings.TrimPrefix(strings.ToLower(string(name)), "0x") {
	case "", "r", "read", "get", "gets", "8", "08", "28", "88", "a8": // READ (6), (10), (16), (12)
		return Read, nil
	case "w", "write", "set", "add", "replace", "cas", "append", "prepend", "incr", "decr", "update", "put",
		"a", "0a", "2a", "8a", "aa", // WRITE (6), (10), (16), (12)
		"2e", "8e", "ae", "41", "93": // WRITE AND VERIFY, WRITE SAME
		return Write, nil
	case "d", "delete", "del", "remove", "42": // UNMAP
		return Delete, nil
	}
	return 0, fmt.Errorf("operation %s: want a name such as read, or a SCSI code such as 28", quoted(name))
}
