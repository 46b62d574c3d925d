package capture

// Cursor goes through when keys come again, beside [Trace.Each].
type Cursor struct {
	column *column
	at     int64 // of what is read after next
	next   []uint64
	window window
}

// Cursor returns one that is at the first request. The recording is linked.
func (r *Trace) Cursor() *Cursor { return &Cursor{column: r.next} }

// Next returns the number of the request that follows on the one where the cursor is, of its
// key, or [Gone] or [Never], and goes on to the request behind. There is one.
func (c *Cursor) Next() (int64, error) {
	if len(c.next) == 0 {
		var err error
		if c.next, err = c.column.read(c.at, &c.window); err != nil {
			return 0, err
		}
		c.at += int64(len(c.next))
	}
	v := c.next[0]
	c.next = c.next[1:]
	return int64(v), nil
}
