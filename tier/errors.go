package tier

import "errors"

var (
	// ErrAbsent says that the origin has no value for the key. A loader returns it
	// (wrapped or not) to have the absence cached for its own short life; a read of
	// an absent entry answers with it.
	ErrAbsent = errors.New("terrace: no value for this key")

	// ErrClosed is the answer of a store or cache that has been closed.
	ErrClosed = errors.New("terrace: closed")

	// ErrTooLarge says that a store does not take a value of this size. What the
	// store held for the key before is gone.
	ErrTooLarge = errors.New("terrace: value too large for the store")

	// ErrUnencodable says that a codec cannot turn a value into bytes. What a store held
	// for the key before goes with a Set that fails for it.
	ErrUnencodable = errors.New("terrace: value cannot be encoded")

	// ErrUnreadable says that a store holds bytes for the key that are no entry of
	// this cache: corrupt, of another version, or of another type. It counts as a
	// miss, and the bytes are overwritten by the next write.
	ErrUnreadable = errors.New("terrace: unreadable entry")

	// ErrNotResizable is the answer of a store whose capacity cannot be changed while it
	// works.
	ErrNotResizable = errors.New("terrace: the store's capacity cannot be changed while it works")

	// ErrBadKey says that a key cannot be used: it does not equal itself (NaN), or
	// it cannot be turned into a string for a byte store.
	ErrBadKey = errors.New("terrace: unusable key")
)

// UnreadableError is an [ErrUnreadable] with its reason. It never holds any of
// the bytes.
type UnreadableError struct {
	// Reason is one of "short", "magic", "version", "flags", "transform", "lengths",
	// "checksum", "schema", "clock", "decode" or "type".
	Reason string
	// Err is the error of the codec, the compression or the encryption where the reason
	// is "decode", else nil.
	Err error
}

func (e *UnreadableError) Error() string {
	return ErrUnreadable.Error() + ": " + e.Reason
}

// Is makes errors.Is(err, ErrUnreadable) hold.
func (e *UnreadableError) Is(target error) bool { return target == ErrUnreadable }

// Unwrap returns the codec's error.
func (e *UnreadableError) Unwrap() error { return e.Err }
