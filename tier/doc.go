// Package tier holds the contracts that every part of Terrace meets at: the
// immutable [Entry], the [Store] that keeps entries, the [Bytes] store that keeps
// bytes in another process, the capabilities that a store may have beyond these,
// and [Encode], which makes a Store of a Bytes.
//
// It imports nothing of Terrace, so a store of one's own needs this package only.
// The suite in tier/storetest checks one.
package tier
