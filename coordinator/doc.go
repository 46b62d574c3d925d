// Package coordinator chains tiers into one cache: it reads through them from the
// top, loads what none has with one loader per key, fills the answer into the tiers
// above, refreshes by a policy, and keeps writes and invalidations ahead of
// whatever was read before them.
//
// The rules that it keeps have names (L1, W1, T3, …) that docs/guarantees.md lists;
// comments point to them.
package coordinator
