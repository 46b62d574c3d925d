package coordinator

// CooldownsOf returns how many keys' failures the cache remembers.
func CooldownsOf[K comparable, V any](c *Cache[K, V]) int {
	c.cooldowns.mu.Lock()
	defer c.cooldowns.mu.Unlock()
	return len(c.cooldowns.keys)
}

// ClearsUp reports whether the tiers in memory are suspect and about to be cleared, with what
// is stored there meanwhile.
func ClearsUp[K comparable, V any](c *Cache[K, V]) bool {
	c.above.mu.Lock()
	defer c.above.mu.Unlock()
	return c.above.clearing
}

// ServesFirst reports whether hits are served from the first tier without a look at what is
// known of it.
func ServesFirst[K comparable, V any](c *Cache[K, V]) bool { return c.settings.Load().top != nil }
