package coordinator

// CooldownsOf returns how many keys' failures the cache remembers.
func CooldownsOf[K comparable, V any](c *Cache[K, V]) int {
	c.cooldowns.mu.Lock()
	defer c.cooldowns.mu.Unlock()
	return len(c.cooldowns.keys)
}
