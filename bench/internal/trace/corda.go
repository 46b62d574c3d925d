package trace

import be "encoding/binary"

// decodeCorda reads a big-endian int64, as in the traces of the Corda ledger.
func decodeCorda(record []byte, to *Request) error {
	*to = Request{Key: be.BigEndian.Uint64(record)}
	return nil
}
