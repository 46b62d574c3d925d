package tier

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"time"
	"unsafe"
)

// The envelope is what a byte store holds: the times and marks of an entry around
// its encoded value. docs/wire-format.md describes it for other languages, and
// golden bytes in the tests hold it still.
//
//	offset size
//	 0  1  magic 0xC7
//	 1  1  version 1
//	 2  1  flags
//	 3  1  transform: compression in the low half, encryption in the high half; 0, none
//	 4  4  nonce, random
//	 8  8  load began, Unix nanoseconds
//	16  4  schema: CRC-32C of the schema string
//	20  4  CRC-32C of key, bytes 0-19 and bytes 24-end
//	24  8  fresh for, nanoseconds from the load's beginning
//	32  8  usable for, nanoseconds from the load's beginning
//	40  8  load time, nanoseconds
//	48     tags, validator (where flagged), payload; all of these as one where encrypted
//
// All integers are big-endian. The first HeadSize bytes tell one write from all
// others of the key.
const (
	envelopeMagic   = 0xC7
	envelopeVersion = 1
	envelopeSize    = 48
)

const (
	flagAbsent    = 1 << iota // the origin has no value
	flagNil                   // the value is nil; no payload
	flagTags                  // tags follow the fixed part
	flagValidator             // a validator follows the tags
	flagTombstone             // deleted; nothing follows
	flagLease                 // of a tombstone: somebody loads the key
	flagsKnown    = 1<<iota - 1
)

// MaxSkew is how far another process's wall clock may be ahead of this one's for its
// entries to be read.
const MaxSkew = 10 * time.Second

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// clocks is one reading of both clocks, to convert between them.
type clocks struct {
	mono Instant
	wall int64 // Unix nanoseconds
}

// readClocks reads both at once: a pause between two readings would lengthen the
// lives of all entries converted with them.
func readClocks() clocks {
	now := time.Now()
	return clocks{mono: Instant(now.Sub(origin)), wall: now.UnixNano()}
}

// envelope is the envelope's content without the value.
type envelope struct {
	meta      Meta
	isNil     bool
	tombstone bool
	lease     bool // a tombstone that is the mark of a lease
}

// appendEnvelope appends an envelope without its checksum; the caller appends the
// payload and then calls sealEnvelope.
func appendEnvelope(dst []byte, e envelope, schema uint32, now clocks) []byte {
	var flags byte
	set := func(on bool, flag byte) {
		if on {
			flags |= flag
		}
	}
	set(e.meta.Absent, flagAbsent)
	set(e.isNil, flagNil)
	set(len(e.meta.Tags) > 0, flagTags)
	set(e.meta.Validator != "", flagValidator)
	set(e.tombstone, flagTombstone)
	set(e.lease, flagLease)

	dst = append(dst, envelopeMagic, envelopeVersion, flags, 0)
	dst = binary.BigEndian.AppendUint32(dst, rand.Uint32())
	dst = binary.BigEndian.AppendUint64(dst, uint64(now.wall-int64(now.mono.Sub(e.meta.LoadedAt))))
	dst = binary.BigEndian.AppendUint32(dst, schema)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.meta.FreshUntil.Sub(e.meta.LoadedAt)))
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.meta.UsableUntil.Sub(e.meta.LoadedAt)))
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.meta.LoadTime))
	if flags&flagTags != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(e.meta.Tags)))
		for _, tag := range e.meta.Tags {
			dst = appendString(dst, tag)
		}
	}
	if flags&flagValidator != 0 {
		dst = appendString(dst, e.meta.Validator)
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func sealEnvelope(b []byte, key string) {
	binary.BigEndian.PutUint32(b[20:], envelopeChecksum(b, key))
}

// envelopeChecksum covers the key, so that bytes that end up under another key, by
// a client that mixes up its replies or a tool that renames, are unreadable there.
func envelopeChecksum(b []byte, key string) uint32 {
	sum := crc32.Update(0, castagnoli, unsafe.Slice(unsafe.StringData(key), len(key))) // which only reads
	sum = crc32.Update(sum, castagnoli, b[:20])
	return crc32.Update(sum, castagnoli, b[24:])
}

// parseEnvelope checks and reads an envelope and returns the payload behind it.
//
// Another process's wall clock may be ahead of or behind this one's. An age below
// zero is taken as zero, so an entry never has more life left than it had at birth;
// one further below than MaxSkew is unreadable, or each reading would be a new birth.
func parseEnvelope(b []byte, key string, schema uint32, now clocks, t transforms) (envelope, []byte, error) {
	var e envelope
	fail := func(reason string) (envelope, []byte, error) {
		return envelope{}, nil, &UnreadableError{Reason: reason}
	}
	switch {
	case len(b) < envelopeSize:
		return fail("short")
	case b[0] != envelopeMagic:
		return fail("magic")
	case b[1] != envelopeVersion:
		return fail("version")
	case b[2]&^flagsKnown != 0:
		return fail("flags")
	case !t.undoes(b[3], b[2]):
		return fail("transform")
	case binary.BigEndian.Uint32(b[20:]) != envelopeChecksum(b, key):
		return fail("checksum")
	}
	flags := b[2]
	if flags&flagTombstone != 0 {
		return envelope{tombstone: true, lease: flags&flagLease != 0}, nil, nil
	}
	if flags&flagLease != 0 {
		return fail("flags")
	}
	if binary.BigEndian.Uint32(b[16:]) != schema {
		return fail("schema")
	}
	age := Instant(now.wall).Sub(Instant(binary.BigEndian.Uint64(b[8:])))
	if age < -MaxSkew {
		return fail("clock")
	}
	age = max(0, age)
	e.meta.LoadedAt = now.mono.Add(-age)
	e.meta.FreshUntil = e.meta.LoadedAt.Add(time.Duration(binary.BigEndian.Uint64(b[24:])))
	e.meta.UsableUntil = e.meta.LoadedAt.Add(time.Duration(binary.BigEndian.Uint64(b[32:])))
	e.meta.LoadTime = max(0, time.Duration(binary.BigEndian.Uint64(b[40:])))
	e.meta.Absent = flags&flagAbsent != 0
	e.isNil = flags&flagNil != 0

	rest, err := t.open(b, key)
	if err != nil {
		return envelope{}, nil, transformError(err)
	}
	var ok bool
	if flags&flagTags != 0 {
		if e.meta.Tags, rest, ok = readTags(rest); !ok {
			return fail("lengths")
		}
	}
	if flags&flagValidator != 0 {
		if e.meta.Validator, rest, ok = readString(rest); !ok {
			return fail("lengths")
		}
	}
	if rest, err = t.decompress(rest, b[3]); err != nil {
		return envelope{}, nil, transformError(err)
	}
	return e, rest, nil
}

// headLeased reports whether the first HeadSize bytes of an envelope are a lease's mark.
func headLeased(head []byte) bool {
	return len(head) >= HeadSize && head[0] == envelopeMagic && head[1] == envelopeVersion &&
		head[2]&(flagTombstone|flagLease) == flagTombstone|flagLease
}

// headBuried reports whether the first HeadSize bytes of an envelope are a tombstone, of
// a deletion or a lease.
func headBuried(head []byte) bool { return head[2]&flagTombstone != 0 }

// headTime returns the time that the first HeadSize bytes of an envelope hold.
func headTime(head []byte, now clocks) (Instant, bool) {
	if len(head) < HeadSize || head[0] != envelopeMagic || head[1] != envelopeVersion {
		return 0, false
	}
	wall := int64(binary.BigEndian.Uint64(head[8:HeadSize]))
	return now.mono.Add(-time.Duration(now.wall - wall)), true
}

// keepTime gives an envelope the time that a head has, if it has one. It must be sealed
// again.
func keepTime(b, head []byte) {
	if len(head) == HeadSize {
		copy(b[8:HeadSize], head[8:])
	}
}

func readTags(b []byte) ([]string, []byte, bool) {
	n, size := binary.Uvarint(b)
	// Each tag takes a byte at least, which bounds what a false count can allocate.
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	b = b[size:]
	tags := make([]string, 0, n)
	for range n {
		tag, rest, ok := readString(b)
		if !ok {
			return nil, nil, false
		}
		tags, b = append(tags, tag), rest
	}
	return tags, b, true
}

func readString(b []byte) (string, []byte, bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return "", nil, false
	}
	end := size + int(n)
	return string(b[size:end]), b[end:], true
}
