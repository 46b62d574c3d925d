package trace

import (
	"bytes"
	"errors"
	"fmt"
)

// twitter is lines of timestamp, key, key size, value size, client id, operation and TTL.
// An object's size is that of its key and value. Source: Yang, Yue, Rashmi, "A large
// scale analysis of hundreds of in-memory cache clusters at Twitter", OSDI 2020.
type twitter struct{ hasher }

func (t *twitter) fields() Fields { return Fields{Sizes: true, Ops: true, Times: true} }

func (t *twitter) parse(line []byte, to *run) error {
	const want = 7
	var f [want][]byte
	n := 0
	for rest, more := line, true; more; n++ {
		var field []byte
		field, rest, more = bytes.Cut(rest, []byte{','})
		if n < want {
			f[n] = bytes.TrimSpace(field)
		}
	}
	if n != want {
		return wantFields(n, "timestamp, key, key size, value size, client, operation, TTL")
	}
	at, err := whole(f[0], "timestamp")
	if err != nil {
		return err
	}
	if len(f[1]) == 0 {
		return errors.New("no key")
	}
	q := Request{Key: t.hash(f[1]), Time: float64(at)}
	key, err := size(f[2], "key size")
	if err != nil {
		return err
	}
	value, err := size(f[3], "value size")
	if err != nil {
		return err
	}
	q.Size = key + value
	if _, err := whole(f[4], "client"); err != nil {
		return err
	}
	if q.Op, err = twitterOp(f[5]); err != nil {
		return err
	}
	if _, err := whole(f[6], "TTL"); err != nil {
		return err
	}
	return to.one(q)
}

func twitterOp(name []byte) (Op, error) {
	switch string(name) {
	case "get", "gets":
		return Read, nil
	case "set", "add", "replace", "cas", "append", "prepend", "incr", "decr":
		return Write, nil
	case "delete":
		return Delete, nil
	}
	return 0, fmt.Errorf("operation %s: want one of memcached's, such as get", quoted(name))
}
