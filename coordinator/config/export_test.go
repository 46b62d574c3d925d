package config

// PrefixOf returns the prefix of a cache's first tier.
func PrefixOf(d *Document, name string) string { return string(d.spec.Caches[name].Tiers[0].Prefix) }
