package replay

import (
	"context"

	"github.com/terracecache/terrace/bench/internal/capture"
)

// byRecency reports whether [recency] can replay the tiers.
func byRecency(rec *capture.Trace, tiers []Tier) bool {
	return len(tiers) == 1 && tiers[0].Policy == "lru" && !tiers[0].Bytes && tiers[0].Size > 0 && rec.Counts().Deletes == 0
}

// recency replays an LRU of so many entries in one part, without the store: what that has is
// told by when keys come again. It has always the keys that were asked for last, so they are
// those of a part of the trace that ends with the request under way, and that begins where a
// key is to go next. That takes a bit a request, and looks up no key: for a store of a million
// entries a twentieth of the time.
//
// There are no deletions: they would leave room for keys from before that part.
func recency(ctx context.Context, rec *capture.Trace, t Tier, tick func(int64)) (Result, error) {
	r := Result{Tiers: []TierResult{{Tier: t}}}
	hits := rec.NewMarks(t.Size) // of the keys that are held
	oldest := rec.Cursor()
	held := int64(0)
	err := rec.Each(ctx, func(b *capture.Batch) error {
		for i := range b.Requests {
			now := b.First + int64(i)
			hit := hits.Remove(now)
			r.Count(&b.Requests[i], hit)
			if b.Next[i] != capture.Never {
				hits.Add(b.Next[i])
			}
			if hit {
				continue
			}
			for held++; held > t.Size; {
				again, err := oldest.Next()
				switch {
				case err != nil:
					return err
				case again <= now: // it was asked for since
					continue
				case again != capture.Never:
					hits.Remove(again)
				}
				held--
			}
			r.Tiers[0].Held = max(r.Tiers[0].Held, held)
		}
		tick(b.First + int64(len(b.Requests)))
		return nil
	})
	r.Tiers[0].Hits = r.Hits
	return r, err
}
