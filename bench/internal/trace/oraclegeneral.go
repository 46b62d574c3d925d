package trace

import (
	le "encoding/binary"
	"fmt"
)

// oracleGeneralWidth is that of a record: time (uint32), id (uint64), size (uint32), next
// access (int64, -1: never).
const oracleGeneralWidth = 24

// decodeOracleGeneral reads a record of libCacheSim's oracleGeneral. The next access is
// left to whoever needs it: that of a trace which was cut is not true any more.
func decodeOracleGeneral(record []byte, to *Request) error {
	if next := int64(le.LittleEndian.Uint64(record[16:])); next < -1 {
		return fmt.Errorf("next access %d: want -1 or a record's number", next)
	}
	*to = Request{
		Time: float64(le.LittleEndian.Uint32(record)),
		Key:  le.LittleEndian.Uint64(record[4:]),
		Size: int64(le.LittleEndian.Uint32(record[12:])),
	}
	return nil
}
