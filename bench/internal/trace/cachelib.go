package trace

import "errors"

// cacheLib is a table of key, op, op_count, which says how often the row stands for itself,
// size, key_size, op_time in seconds, and others that do not matter here. An object's size
// is that of its key and value.
func cacheLib(h header) (columnsOf, error) {
	c := columnsOf{
		key: h.column("key"), op: h.column("op"), count: h.column("op_count"), at: h.column(timeColumns...),
		sizes: [2]sizeColumn{{h.column("size"), "size"}, {h.column("key_size"), "key_size"}},
	}
	if c.key < 0 || c.op < 0 {
		return c, errors.New("not CacheLib's header: want columns key and op")
	}
	return c, nil
}
