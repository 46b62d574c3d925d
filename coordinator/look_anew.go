package coordinator

// looksAnew is how often a flight looks at most while others write. What it has then it
// answers, and does not store.
const looksAnew = 4

// lookAnew searches the levels that are shared, and once more where others have written
// meanwhile. Where a lease is to be had this process is told of marks as of other writes.
// A flight that were fenced by those, as it is by other writes, could not store what it
// loads once it has the lease.
func (c *Cache[K, V]) lookAnew(f *flight[K, V], from int) {
	for range looksAnew {
		if c.lessor != nil && from < len(c.levels) {
			f.look()
		}
		x := &f.finding
		x.hit, x.pair, x.source, x.refresh, x.calm = nil, nil, 0, false, false
		c.search(&f.work, f.key, from, len(c.levels), f.refreshing, x)
		if x.hit == nil || f.work.isLeft() || !f.isOvertaken() {
			return
		}
	}
}

// look has the flight trust what it is going to see. Until it loads no write of others
// fences it.
func (f *flight[K, V]) look() {
	f.shard.mu.Lock()
	defer f.shard.mu.Unlock()
	f.forgetOvertaken()
	f.looking, f.doubted = true, false
}

// isOvertaken reports whether others have written since the flight began to look.
func (f *flight[K, V]) isOvertaken() bool {
	if f.cache.bus == nil && f.cache.tracking == nil {
		return false // nobody could tell
	}
	f.shard.mu.Lock()
	defer f.shard.mu.Unlock()
	return f.doubted && !f.fenced
}

// beginLoad ends the looking. What is loaded from now on is newer than all that was told
// until now; that the shared tier still holds what was seen there is a condition of its
// being stored.
func (f *flight[K, V]) beginLoad() {
	f.shard.mu.Lock()
	defer f.shard.mu.Unlock()
	f.forgetOvertaken()
	f.looking, f.doubted = false, false
}

// forgetOvertaken drops the reserve where others have written since it was seen. The lock
// is held.
func (f *flight[K, V]) forgetOvertaken() {
	if f.doubted {
		f.finding.reserve, f.finding.reserveSource = nil, 0
	}
}
