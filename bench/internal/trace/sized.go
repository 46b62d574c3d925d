package trace

// sized is lines of "sequence key sizeBytes". A key may come back with another size.
type sized struct{ hasher }

func (s *sized) fields() Fields { return Fields{Sizes: true} }

func (s *sized) parse(line []byte, to *run) error {
	var f [3][]byte
	if n := columns(line, f[:]); n != len(f) {
		return wantFields(n, "sequence number, key, size in bytes")
	}
	if _, err := whole(f[0], "sequence number"); err != nil {
		return err
	}
	bytes, err := size(f[2], "size")
	if err != nil {
		return err
	}
	return to.one(Request{Key: s.hash(f[1]), Size: bytes})
}
