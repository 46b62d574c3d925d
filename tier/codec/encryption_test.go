package codec_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/terracecache/terrace/tier"
	"github.com/terracecache/terrace/tier/codec"
)

var _ tier.Sealer = (*codec.Encryption)(nil)

func randomKey(t testing.TB) []byte {
	t.Helper()
	key := make([]byte, codec.KeySize)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	return key
}

// shows reports whether the text holds a part of the key in any usual form.
func shows(text string, key []byte) bool {
	part := key[:min(len(key), 6)]
	decimal := strings.Trim(fmt.Sprintf("%d", part), "[]")
	for _, form := range []string{
		string(part), hex.EncodeToString(part), base64.StdEncoding.EncodeToString(part), base64.URLEncoding.EncodeToString(part),
		decimal, strings.ReplaceAll(decimal, " ", ", "), fmt.Sprintf("%#v", part)[7:30],
	} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(form)) {
			return true
		}
	}
	return false
}

func TestEncryption(t *testing.T) {
	a, b := randomKey(t), randomKey(t)
	old, err := codec.NewEncryption(a)
	if err != nil {
		t.Fatal(err)
	}
	both, err := codec.NewEncryption(b, a)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, plaintext := range [][]byte{{}, {0}, []byte("payload"), bytes.Repeat([]byte("x"), 100_000)} {
		sealed, err := old.Seal([]byte("envelope"), plaintext, []byte("key"))
		if err != nil || !bytes.HasPrefix(sealed, []byte("envelope")) || len(sealed) != 8+32+len(plaintext) {
			t.Fatalf("Seal of %d bytes: %d bytes, %v", len(plaintext), len(sealed), err)
		}
		sealed = sealed[8:]
		if nonce := string(sealed[4:16]); seen[nonce] {
			t.Error("a nonce is used twice")
		} else {
			seen[nonce] = true
		}
		for _, e := range []*codec.Encryption{old, both} {
			if got, err := e.Open(sealed, []byte("key")); err != nil || got == nil || !bytes.Equal(got, plaintext) {
				t.Errorf("Open of %d bytes: %d bytes, %v", len(plaintext), len(got), err)
			}
		}
		if _, err := both.Open(sealed, []byte("kez")); err == nil {
			t.Error("opened with other additional data")
		}
		for n := range min(len(sealed), 50) {
			if _, err := both.Open(sealed[:n], []byte("key")); err == nil {
				t.Errorf("the first %d bytes were opened", n)
			}
		}
	}
	sealed, err := both.Seal(nil, []byte("payload"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Open(sealed, nil); err == nil {
		t.Error("the new key's was opened with the old one")
	}
	var none *codec.Encryption
	for _, e := range []*codec.Encryption{none, {}} {
		if _, err := e.Seal(nil, nil, nil); err == nil || e.Validate() == nil {
			t.Error("an encryption without keys seals")
		}
		if _, err := e.Open(sealed, nil); err == nil {
			t.Error("an encryption without keys opens")
		}
	}
}

func TestNewEncryptionRefuses(t *testing.T) {
	key := randomKey(t)
	for what, keys := range map[string][][]byte{
		"none":         {},
		"nil":          {nil},
		"short":        {key[:31]},
		"16 bytes":     {key[:16]},
		"long":         {append(bytes.Clone(key), 0)},
		"one of two":   {key, key[:24]},
		"twice":        {key, bytes.Clone(key)},
		"twice behind": {randomKey(t), key, key},
	} {
		e, err := codec.NewEncryption(keys...)
		if e != nil || err == nil {
			t.Errorf("%s: got %v, %v, want an error", what, e, err)
		} else if shows(err.Error(), key) {
			t.Errorf("%s: the error shows the key", what)
		}
	}
}

func TestEncryptionShowsNoKey(t *testing.T) {
	key := randomKey(t)
	e, err := codec.NewEncryption(key, randomKey(t))
	if err != nil {
		t.Fatal(err)
	}
	type private struct {
		p *codec.Encryption
		v codec.Encryption
	}
	type public struct{ E *codec.Encryption }
	for _, x := range []any{e, *e, private{e, *e}, &private{e, *e}, public{e}, tier.EncodeOptions[string]{Encryption: e}, []any{e, *e}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%t", "%5.2f"} {
			if text := fmt.Sprintf(verb, x); shows(text, key) {
				t.Errorf("%s of a %T shows the key: %s", verb, x, text)
			}
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "e", x)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "e", x)
		text, _ := json.Marshal(x)
		if shows(log.String(), key) || shows(string(text), key) {
			t.Errorf("a log or the JSON of a %T shows the key: %s %s", x, log.String(), text)
		}
	}
	for _, text := range []string{e.String(), e.GoString(), fmt.Sprintf("%#v", e)} {
		if !strings.HasPrefix(text, "AES-256-GCM ") {
			t.Errorf("got %q, want the cipher and ids", text)
		}
	}
}

func TestParseKey(t *testing.T) {
	keys := [][]byte{randomKey(t), make([]byte, 32), bytes.Repeat([]byte{0xff}, 32), bytes.Repeat([]byte{0xfb, 0xef, 0xbe, 0xff}, 8)}
	for _, key := range keys {
		for _, text := range []string{
			hex.EncodeToString(key), strings.ToUpper(hex.EncodeToString(key)),
			base64.StdEncoding.EncodeToString(key), base64.RawStdEncoding.EncodeToString(key),
			base64.URLEncoding.EncodeToString(key), base64.RawURLEncoding.EncodeToString(key),
			" \t" + base64.StdEncoding.EncodeToString(key) + "\r\n",
		} {
			if got, err := codec.ParseKey(text); err != nil || !bytes.Equal(got, key) {
				t.Errorf("ParseKey of %q = %x, %v", text, got, err)
			}
		}
	}
	for _, text := range []string{
		"", "secret", strings.Repeat("a", 32), strings.Repeat("a", 42), strings.Repeat("a", 45), strings.Repeat("g", 64), strings.Repeat("a", 63),
		hex.EncodeToString(make([]byte, 31)), hex.EncodeToString(make([]byte, 33)), base64.StdEncoding.EncodeToString(make([]byte, 31)),
		base64.StdEncoding.EncodeToString(make([]byte, 33)), base64.RawStdEncoding.EncodeToString(make([]byte, 32)) + "==",
		strings.Repeat("A", 42) + "B", "0x" + hex.EncodeToString(make([]byte, 32)), strings.Repeat("+", 21) + strings.Repeat("_", 22),
	} {
		key, err := codec.ParseKey(text)
		if key != nil || err == nil {
			t.Errorf("ParseKey of %q = %x, want an error", text, key)
		} else if text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("the error shows the text %q", text)
		}
	}
}
