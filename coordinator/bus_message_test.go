package coordinator

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func busMessages() []busMessage {
	at := time.UnixMicro(1_700_000_000_123_456)
	m := busMessage{kind: busKeys, publisher: 1<<63 + 5, epoch: 7, sequence: 300, at: at, interval: 2 * time.Second, form: 9,
		keys: []busKey{{busDrop, "a"}, {busExpire, ""}, {busDrop, strings.Repeat("x", busMostText)}}}
	all := []busMessage{m}
	for _, kind := range []busKind{busAll, busHeartbeat, busBye} {
		m.kind, m.keys, m.form = kind, nil, 0
		all = append(all, m)
	}
	return all
}

func TestBusMessages(t *testing.T) {
	for _, want := range busMessages() {
		b := want.encode()
		got, err := decodeBusMessage(b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		for i := range b {
			if _, err := decodeBusMessage(b[:i]); !errors.Is(err, errBusMessage) {
				t.Fatalf("kind %d, the first %d bytes of %d: %v", want.kind, i, len(b), err)
			}
			changed := bytes.Clone(b)
			changed[i] ^= 0x10
			if _, err := decodeBusMessage(changed); !errors.Is(err, errBusMessage) {
				t.Fatalf("kind %d, byte %d changed: %v", want.kind, i, err)
			}
		}
		if _, err := decodeBusMessage(append(bytes.Clone(b), 0)); !errors.Is(err, errBusMessage) {
			t.Errorf("a byte more: %v", err)
		}
	}
}

func FuzzBusMessage(f *testing.F) {
	for _, m := range busMessages() {
		f.Add(m.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeBusMessage(b)
		if err != nil {
			return
		}
		again, err := decodeBusMessage(m.encode())
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%+v came back as %+v, %v", m, again, err)
		}
	})
}
