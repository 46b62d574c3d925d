package coordinator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// busKind is what a message of the bus is for.
type busKind byte

const (
	busKeys      busKind = iota + 1 // these keys were written
	busAll                          // any key may have been written
	busHeartbeat                    // the publisher lives, and has counted so far
	busBye                          // it has nothing more to say
)

// busOp is what was done to a key. Of two the greater counts.
type busOp byte

const (
	busExpire busOp = iota + 1
	busDrop         // Set or Delete
)

// busMessage is a message of the bus. docs/decisions.md has its form.
type busMessage struct {
	kind      busKind
	publisher uint64
	epoch     uint64
	sequence  uint64 // of the last message that announces writes: this, or the one before
	at        time.Time
	interval  time.Duration // of the publisher's heartbeats
	form      uint32        // of the keys' texts
	keys      []busKey
}

type busKey struct {
	op   busOp
	text string
}

const (
	busMagic   = 0xB5
	busVersion = 1
	busHeader  = 40
	busSum     = 4

	// A message has at most so many keys, none with a longer text.
	busMostKeys = 256
	busMostText = 2048
)

var busTable = crc32.MakeTable(crc32.Castagnoli)

func (m *busMessage) encode() []byte {
	size := busHeader + busSum
	for _, k := range m.keys {
		size += len(k.text) + 4
	}
	b := make([]byte, 0, size+8)
	b = append(b, busMagic, busVersion, byte(m.kind), 0)
	b = binary.BigEndian.AppendUint64(b, m.publisher)
	b = binary.BigEndian.AppendUint64(b, m.epoch)
	b = binary.BigEndian.AppendUint64(b, m.sequence)
	b = binary.BigEndian.AppendUint64(b, uint64(m.at.UnixMicro()))
	b = binary.BigEndian.AppendUint32(b, uint32((m.interval+time.Millisecond-1)/time.Millisecond))
	if m.kind == busKeys {
		b = binary.BigEndian.AppendUint32(b, m.form)
		for _, k := range m.keys {
			b = append(b, byte(k.op))
			b = binary.AppendUvarint(b, uint64(len(k.text)))
			b = append(b, k.text...)
		}
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, busTable))
}

// errBusMessage is what a message is that cannot be read.
var errBusMessage = errors.New("terrace: unreadable message on the bus")

// decodeBusMessage reads a message of this version whole, or not at all.
func decodeBusMessage(b []byte) (m busMessage, err error) {
	bad := func(why string) (busMessage, error) { return busMessage{}, fmt.Errorf("%w: %s", errBusMessage, why) }
	switch {
	case len(b) < 2 || b[0] != busMagic:
		return bad("not one of a cache")
	case b[1] != busVersion:
		return bad(fmt.Sprintf("version %d", b[1]))
	case len(b) < busHeader+busSum:
		return bad("too short")
	}
	body := b[:len(b)-busSum]
	if crc32.Checksum(body, busTable) != binary.BigEndian.Uint32(b[len(body):]) {
		return bad("checksum")
	}
	m = busMessage{
		kind:      busKind(b[2]),
		publisher: binary.BigEndian.Uint64(b[4:]),
		epoch:     binary.BigEndian.Uint64(b[12:]),
		sequence:  binary.BigEndian.Uint64(b[20:]),
		at:        time.UnixMicro(int64(binary.BigEndian.Uint64(b[28:]))),
		interval:  time.Duration(binary.BigEndian.Uint32(b[36:])) * time.Millisecond,
	}
	if m.interval <= 0 || m.interval > time.Hour {
		return bad("interval")
	}
	rest := body[busHeader:]
	switch m.kind {
	case busAll, busHeartbeat, busBye:
		if len(rest) > 0 {
			return bad("length")
		}
		return m, nil
	case busKeys:
	default:
		return bad(fmt.Sprintf("kind %d", m.kind))
	}
	if len(rest) < 4 {
		return bad("length")
	}
	m.form = binary.BigEndian.Uint32(rest)
	for rest = rest[4:]; len(rest) > 0; {
		op := busOp(rest[0])
		n, size := binary.Uvarint(rest[1:])
		if op < busExpire || op > busDrop || size <= 0 || n > uint64(len(rest)-1-size) {
			return bad("keys")
		}
		rest = rest[1+size:]
		m.keys = append(m.keys, busKey{op, string(rest[:n])})
		rest = rest[n:]
	}
	return m, nil
}
