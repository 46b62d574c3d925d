package trace

import (
	"bytes"
	"errors"
	"slices"
)

// twitter is lines of timestamp, key, key size, value size, client id, operation and TTL.
// An object's size is that of its key and value. Source: Yang, Yue, Rashmi, "A large
// scale analysis of hundreds of in-memory cache clusters at Twitter", OSDI 2020.
type twitter struct {
	hasher
	separated
}

// twitterWidth is how many fields a line has.
const twitterWidth = 7

// newTwitter returns the decoder of lines as they were published, or of a table of the same
// where somebody has given them a header.
func newTwitter(s *source, h hasher, times bool) (decoder, error) {
	head := s.beginning()
	fields, by := firstFields(head)
	if isTwitterHeader(newHeader(fields)) {
		return newTable(s, &table{hasher: h, begin: twitterTable, operation: operation, times: times})
	}
	for line := range bytes.Lines(bytes.TrimPrefix(head, byteOrderMark)) {
		for i := range len(separators) {
			t := &twitter{separated: separated{by: separators[i]}}
			if t.parse(t.trim(line), new(run)) == nil {
				return newLines(s, &twitter{hasher: h, separated: separated{by: t.by}}), nil
			}
		}
	}
	return newLines(s, &twitter{hasher: h, separated: separated{by: by}}), nil
}

// isTwitterHeader reports whether the columns are those of a Twitter trace, named.
func isTwitterHeader(h header) bool {
	c, err := twitterTable(h)
	return err == nil && c.sizes[0].at >= 0
}

func twitterTable(h header) (columnsOf, error) {
	c := columnsOf{
		key: h.column("key", "anonymized key"), op: h.column("operation", "op"), count: -1, at: h.column(timeColumns...),
		sizes: [2]sizeColumn{{h.column("value size"), "value size"}, {h.column("key size"), "key size"}},
	}
	if c.key < 0 || c.op < 0 {
		return c, errors.New("not the header of a Twitter trace: want columns key and operation")
	}
	return c, nil
}

func (t *twitter) fields() Fields { return Fields{Sizes: true, Ops: true, Times: true} }

func (t *twitter) parse(line []byte, to *run) error {
	f, err := t.split(line)
	if err != nil {
		return err
	}
	if f = fit(f, twitterWidth); len(f) > twitterWidth {
		f = t.joinKey(line, f)
	}
	if len(f) != twitterWidth {
		return wantFields(len(f), "timestamp, key, key size, value size, client, operation, TTL")
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
	if q.Op, err = operation(f[5]); err != nil {
		return err
	}
	if _, err := whole(f[6], "TTL"); err != nil {
		return err
	}
	return to.one(q)
}

// joinKey makes one field of what is between the timestamp and the last five, as a key may
// have separators in it.
func (t *twitter) joinKey(line []byte, f [][]byte) [][]byte {
	if bytes.IndexByte(line, '"') >= 0 {
		return f // which would tell
	}
	from, to := bytes.IndexByte(line, t.by)+1, len(line)
	for range twitterWidth - 2 {
		to = bytes.LastIndexByte(line[:to], t.by)
	}
	f[1] = bytes.TrimSpace(line[from:to])
	return slices.Delete(f, 2, len(f)-(twitterWidth-2))
}
