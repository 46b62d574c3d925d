package trace

import "fmt"

// Format is how a trace is written.
type Format string

// The formats.
const (
	Plain         Format = "plain"         // a key a line, any text without white space
	LIRS          Format = "lirs"          // a decimal block number a line; a line of * is a mark
	ARC           Format = "arc"           // start count ignored requestNo: count keys in a row
	Cache2k       Format = "cache2k"       // big-endian int32
	Corda         Format = "corda"         // big-endian int64
	Address       Format = "address"       // l or s, a hexadecimal address, a count, perhaps two penalties
	Twitter       Format = "twitter"       // CSV of the Twitter clusters (2020), which have no header
	LibCacheSim   Format = "libcachesim"   // CSV with a header
	OracleGeneral Format = "oraclegeneral" // libCacheSim's binary form
	CacheLib      Format = "cachelib"      // CacheLib's key-value CSV, with a header
	Sized         Format = "sized"         // sequence key sizeBytes
)

// Formats are all of them.
var Formats = []Format{Plain, LIRS, ARC, Cache2k, Corda, Address, Twitter, LibCacheSim, OracleGeneral, CacheLib, Sized}

// binary reports whether records are numbers of a few bytes.
func (f Format) binary() bool { return f == Cache2k || f == Corda || f == OracleGeneral }

// newDecoder returns the decoder of the format, which takes over the source. times says
// that a column of times is to be read.
func newDecoder(f Format, s *source, times bool) (decoder, error) {
	h := hasher{s.seed}
	switch f {
	case Plain:
		return newLines(s, &plain{h}), nil
	case LIRS:
		return newLines(s, lirs{}), nil
	case ARC:
		return newLines(s, arc{}), nil
	case Cache2k:
		return &binary{source: s, width: 4, decode: decodeCache2k}, nil
	case Corda:
		return &binary{source: s, width: 8, decode: decodeCorda}, nil
	case Address:
		return newLines(s, &address{penalties: hasPenalties(s)}), nil
	case Twitter:
		return newTwitter(s, h, times)
	case LibCacheSim:
		return newTable(s, &table{hasher: h, begin: libCacheSim, operation: blockOperation, times: times})
	case OracleGeneral:
		return &binary{source: s, width: oracleGeneralWidth, decode: decodeOracleGeneral, of: Fields{Sizes: true, Times: true}}, nil
	case CacheLib:
		return newTable(s, &table{hasher: h, begin: cacheLib, operation: operation, times: times})
	case Sized:
		return newLines(s, &sized{h}), nil
	}
	return nil, fmt.Errorf("there is no format %q", f)
}
