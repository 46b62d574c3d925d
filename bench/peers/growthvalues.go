package main

// valueKeys are few, so that those of the largest values fit into a small Redis.
const valueKeys = 100

var growthOfValues = []int{16, 256, 4 << 10, 64 << 10}

// growthValues measures what the size of a value costs: nothing in memory, where it
// is handed out as it is.
func growthValues(g *growth) []block {
	var blocks []block
	for _, bytes := range growthOfValues {
		b := block{group: "growth-values", of: size(float64(bytes)), x: float64(bytes), goroutines: 1}
		for _, w := range []chainWork{
			{name: "terrace-hit-memory", do: getDeed},
			{name: "terrace-hit-redis", do: getDeed, server: redisServer},
			{name: "terrace-set-redis", do: setDeed, server: redisServer},
		} {
			w.tiers, w.keys, w.fill, w.value = 1, valueKeys, true, bytes
			b.subjects = append(b.subjects, chainSubject(g, w))
		}
		blocks = append(blocks, b)
	}
	return blocks
}
