// Package storetest checks stores. Whoever writes a [tier.Bytes] or a [tier.Store]
// runs one function on it:
//
//	func TestConformance(t *testing.T) {
//		storetest.TestBytes(t, func(t testing.TB) tier.Bytes { return mine.New(...) })
//	}
//
// The suite finds out what a store can do beyond its interface (batch, conditional
// writes, clear, measure) and checks that too. It takes a store by its word: an
// entry may be missing at any time, but what is given back must be right. Only of a
// store at rest that holds next to nothing it asks that entries are kept.
//
// [TestBus] does the same for a [tier.Bus]; [BusHub] is one that loses messages on command.
//
// [Map] and [MapBytes] are the simplest stores that are right, for tests of what is
// built on stores; [Faulty] and [FaultyBytes] make any store fail, stall, hang or
// lose writes on command.
package storetest
