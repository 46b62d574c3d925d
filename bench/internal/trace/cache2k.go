package trace

import be "encoding/binary"

// decodeCache2k reads a big-endian int32, as in the traces of the cache2k benchmarks.
func decodeCache2k(record []byte, to *Request) error {
	*to = Request{Key: uint64(int64(int32(be.BigEndian.Uint32(record))))}
	return nil
}
