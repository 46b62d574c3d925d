package trace

import (
	"fmt"
	"strings"
)

// operations are the names that traces have for what is done: those of memcached, of
// CacheLib and of block devices.
var operations = map[string]Op{
	"get": Read, "gets": Read, "get_lease": Read, "read": Read, "r": Read,
	"set": Write, "set_lease": Write, "add": Write, "replace": Write, "cas": Write, "append": Write, "prepend": Write,
	"incr": Write, "decr": Write, "write": Write, "w": Write, "update": Write, "put": Write,
	"delete": Delete, "del": Delete, "remove": Delete, "d": Delete,
}

// operation reads a name, in any case.
func operation(name []byte) (Op, error) {
	op, known := operations[string(name)] // without making a string
	if !known {
		op, known = operations[strings.ToLower(string(name))]
	}
	if !known {
		return 0, fmt.Errorf("operation %s: want a name such as get, set or delete", quoted(name))
	}
	return op, nil
}
