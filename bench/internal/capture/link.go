package capture

import (
	"context"

	"github.com/terracecache/terrace/bench/internal/trace"
)

// Link finds for each request the next one of its key, by going through the trace from
// its end. Where there are more keys than fit into the memory that it may take, it goes
// several times, each time for a part of the keys. It is called once. tick is told how
// many requests are done, of those of the time that it goes.
func (r *Trace) Link(ctx context.Context, tick func(int64)) error {
	return r.link(ctx, mostSlots, tick)
}

func (r *Trace) link(ctx context.Context, slots int, tick func(int64)) error {
	next, err := newColumn(r.dir)
	if err != nil {
		return err
	}
	next.n = r.counts.Requests
	l := &linker{of: r, next: next, seen: newPositions(slots)}
	for ; l.part < 1<<l.bits; l.part++ {
		l.seen.clear()
		if err := l.pass(ctx, tick); err != nil {
			next.close()
			return err
		}
		r.distinct += int64(l.seen.n)
	}
	r.next = next
	return nil
}

// linker goes through a recording. A part of the keys is those whose hash begins with the
// given bits.
type linker struct {
	of   *Trace
	next *column
	part uint64
	bits int
	seen *positions
	wide [3]window
}

func (l *linker) pass(ctx context.Context, tick func(int64)) error {
	r := l.of
	first := l.part == 0
	for end := r.counts.Requests; end > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		from := (end - 1) / chunk * chunk
		keys, err := r.keys.read(from, &l.wide[0])
		if err != nil {
			return err
		}
		var sized []uint64
		if r.fields.Ops {
			if sized, err = r.sized.read(from, &l.wide[1]); err != nil {
				return err
			}
		}
		next := l.wide[2].numbers[:len(keys)]
		if !first {
			if next, err = l.next.read(from, &l.wide[2]); err != nil {
				return err
			}
		}
		for i := len(keys) - 1; i >= 0; i-- {
			hash := mix(keys[i])
			if l.bits > 0 && hash>>(64-l.bits) != l.part {
				continue
			}
			for l.seen.full() {
				l.halve()
			}
			if l.bits > 0 && hash>>(64-l.bits) != l.part {
				continue
			}
			deletes := sized != nil && trace.Op(sized[i]&(1<<opBits-1)) == trace.Delete
			next[i] = uint64(l.seen.swap(hash, from+int64(i), deletes))
		}
		if err := l.next.write(from, next, &l.wide[2]); err != nil {
			return err
		}
		tick(r.counts.Requests - from)
		end = from
	}
	return nil
}

// halve leaves the second half of the keys for later. What was found for them so far is
// found again then.
func (l *linker) halve() {
	l.bits++
	l.part *= 2
	l.seen.keep(func(hash uint64) bool { return hash>>(64-l.bits) == l.part })
}

// mix spreads keys over all 64 bits, each to a place of its own: the end of MurmurHash3,
// whose author, Austin Appleby, placed it in the public domain.
func mix(key uint64) uint64 {
	key ^= key >> 33
	key *= 0xff51afd7ed558ccd
	key ^= key >> 33
	key *= 0xc4ceb9fe1a85ec53
	key ^= key >> 33
	return key
}
