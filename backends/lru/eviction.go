package lru

// Eviction says which entry goes when there is no room.
type Eviction uint8

const (
	// LRU evicts the entry that was used least recently.
	LRU Eviction = iota

	// TwoQueue keeps entries that were used once apart from those used again, so that
	// a scan does not flush what is in use. Source: Johnson, Shasha, "2Q: A Low
	// Overhead High Performance Buffer Management Replacement Algorithm", VLDB 1994.
	TwoQueue

	// ARC shifts the room between recent and frequent entries by what would have
	// been hits. Source: Megiddo, Modha, "ARC: A Self-Tuning, Low Overhead
	// Replacement Cache", FAST 2003. IBM has held patents on it.
	ARC
)

// String returns the name: "lru", "2q" or "arc".
func (e Eviction) String() string {
	switch e {
	case LRU:
		return "lru"
	case TwoQueue:
		return "2q"
	case ARC:
		return "arc"
	default:
		return "unknown"
	}
}
