package trace

import (
	"fmt"
	"strings"
)

// keyColumns are the names under which keys go.
var keyColumns = []string{"lbn", "obj_id", "object_id", "object", "id", "key"}

// libCacheSim is a table of a key, and perhaps a size, a time in seconds and an operation,
// which may be a SCSI code.
func libCacheSim(h header) (columnsOf, error) {
	c := columnsOf{
		key: h.column(keyColumns...), op: h.column("op", "operation", "req_op"), count: -1, at: h.column(timeColumns...),
		sizes: [2]sizeColumn{{h.column("size", "obj_size", "object_size"), "size"}, {at: -1}},
	}
	if c.key < 0 {
		return c, fmt.Errorf("a header without a key: want a column %s", strings.Join(keyColumns, ", "))
	}
	return c, nil
}

// blockOperation reads an operation: a name, or a hexadecimal SCSI code.
func blockOperation(name []byte) (Op, error) {
	switch strings.TrimPrefix(strings.ToLower(string(name)), "0x") {
	case "", "8", "08", "28", "88", "a8": // READ (6), (10), (16), (12)
		return Read, nil
	case "a", "0a", "2a", "8a", "aa", // WRITE (6), (10), (16), (12)
		"2e", "8e", "ae", "41", "93": // WRITE AND VERIFY, WRITE SAME
		return Write, nil
	case "42": // UNMAP
		return Delete, nil
	}
	op, err := operation(name)
	if err != nil {
		err = fmt.Errorf("%w, or a SCSI code such as 28", err)
	}
	return op, err
}
