package gather

// index finds keys in a list that grows. It is used for one list after the other, so
// that its memory is.
type index struct {
	places map[string]int // of the first keys, all of them once these are many
}

// few keys are found faster by comparing than by hashing.
const few = 8

// find returns the key's place in the list, or the one behind its end, where the
// caller is to put it.
func (x *index) find(keys []string, key string) int {
	if len(keys) <= few {
		for i, k := range keys {
			if k == key {
				return i
			}
		}
		return len(keys)
	}
	if x.places == nil {
		x.places = make(map[string]int)
	}
	for i := len(x.places); i < len(keys); i++ {
		x.places[keys[i]] = i
	}
	if place, found := x.places[key]; found {
		return place
	}
	return len(keys)
}

// reset begins a new list.
func (x *index) reset() { clear(x.places) }
