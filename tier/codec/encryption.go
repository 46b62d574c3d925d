package codec

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// KeySize is the length of an encryption key in bytes.
const KeySize = 32

const (
	schemeAESGCM = 1 // part of the wire format
	keyIDSize    = 4
)

// Encryption is a [tier.Sealer]: AES-256-GCM with a random nonce of 96 bits for each
// entry. Whoever can read the store sees keys, times, sizes and the key's short id, and
// whoever can write to it can remove entries or bring back an older entry of the same
// key while that lives; he cannot read, make, change or move one.
//
// Random nonces allow 2^32 entries to be written under one key, by all processes
// together; a repeated nonce, which becomes likelier than 2^-32 beyond that, would
// betray the two entries and allow forgeries. 1,000 writes a second get there in 49
// days: change keys in good time. To change keys without a miss, add the new one behind
// the old in all processes, then put it first in all, then drop the old one.
//
// Payloads are compressed before they are encrypted, so the size of an entry tells how
// well it compresses. Do not compress where one payload holds both a secret and what an
// attacker may choose, and he can see sizes: by trying he could guess the secret.
//
// It is safe for concurrent use. No formatting shows a key.
type Encryption struct {
	ring *keyring // a pointer, which is all that is seen where fmt cannot call Format
}

type keyring struct {
	keys []sealingKey // the first encrypts
}

type sealingKey struct {
	id   [keyIDSize]byte
	aead cipher.AEAD
}

// NewEncryption returns the encryption with the first key, which decrypts with any of
// the keys. Each has [KeySize] random bytes, from crypto/rand and not from a password;
// they are not kept. A wrong length, a key that is given twice and no key at all are
// errors, which do not show a key.
func NewEncryption(keys ...[]byte) (*Encryption, error) {
	if len(keys) == 0 {
		return nil, errNoKeys
	}
	ring := &keyring{keys: make([]sealingKey, len(keys))}
	for i, key := range keys {
		if len(key) != KeySize {
			return nil, fmt.Errorf("terrace: encryption key %d of %d has %d bytes, not %d", i+1, len(keys), len(key), KeySize)
		}
		for j, other := range keys[:i] {
			if bytes.Equal(key, other) {
				return nil, fmt.Errorf("terrace: encryption keys %d and %d are the same", j+1, i+1)
			}
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("terrace: encryption key %d cannot be used", i+1)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("terrace: AES-GCM: %w", err)
		}
		ring.keys[i] = sealingKey{id: keyID(key), aead: aead}
	}
	return &Encryption{ring: ring}, nil
}

// keyID names a key without telling anything about it that helps to find it among
// 2^256.
func keyID(key []byte) (id [keyIDSize]byte) {
	h := sha256.New()
	h.Write([]byte("terrace key id\x00"))
	h.Write(key)
	copy(id[:], h.Sum(nil))
	return id
}

var (
	errNoKeys  = errors.New("terrace: encryption needs a key")
	errUnknown = errors.New("encrypted with a key that is not known here")
	errForged  = errors.New("not authentic: changed, moved, or from elsewhere")
)

// Validate returns an error unless e comes from [NewEncryption].
func (e *Encryption) Validate() error {
	if e == nil || e.ring == nil {
		return errNoKeys
	}
	return nil
}

// Scheme implements [tier.Sealer].
func (*Encryption) Scheme() byte { return schemeAESGCM }

// Seal implements [tier.Sealer]: it appends the key's id (4 bytes), the nonce (12), the
// encrypted bytes and the tag (16).
func (e *Encryption) Seal(dst, plaintext, additional []byte) ([]byte, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	k := &e.ring.keys[0]
	return k.aead.Seal(append(dst, k.id[:]...), nil, plaintext, additional), nil
}

// Open implements [tier.Sealer].
func (e *Encryption) Open(sealed, additional []byte) ([]byte, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	if len(sealed) < keyIDSize {
		return nil, errForged
	}
	err := errUnknown
	for i := range e.ring.keys {
		k := &e.ring.keys[i]
		if !bytes.Equal(k.id[:], sealed[:keyIDSize]) {
			continue
		}
		if plaintext, openErr := k.aead.Open([]byte{}, nil, sealed[keyIDSize:], additional); openErr == nil {
			return plaintext, nil
		}
		err = errForged // or of another key with the same id
	}
	return nil, err
}

// String names the cipher and the keys' ids, which an operator may compare between
// processes.
func (e Encryption) String() string {
	var b strings.Builder
	b.WriteString("AES-256-GCM")
	if e.ring != nil {
		for i := range e.ring.keys {
			fmt.Fprintf(&b, " %x", e.ring.keys[i].id)
		}
	}
	return b.String()
}

// GoString is String.
func (e Encryption) GoString() string { return e.String() }

// Format writes String, whatever the verb.
func (e Encryption) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, e.String()) }

var errKeyText = errors.New("terrace: an encryption key is 32 bytes in base64 or hexadecimal, which this text is not")

// ParseKey returns the key of [KeySize] bytes that a text holds: in hexadecimal, or in
// base64 of the standard or the URL alphabet with or without padding. White space
// around it, such as the end of a line, does not count. The error does not hold the text.
func ParseKey(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	// The lengths differ, so no text is a key in both.
	if key, err := hex.DecodeString(text); err == nil && len(key) == KeySize {
		return key, nil
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if key, err := encoding.Strict().DecodeString(text); err == nil && len(key) == KeySize {
			return key, nil
		}
	}
	return nil, errKeyText
}
