package coordinator

import "testing"

// Who spins has the turn once it is free, and else waits for it in line.
func TestSpinTakesTheTurn(t *testing.T) {
	c := &Cache[string, int]{}
	table := newTable(c)
	first, has := table.beginWrite("key")
	if !has {
		t.Fatal("the first has no turn")
	}
	second, has := table.beginWrite("key")
	if has || second.spin() {
		t.Fatal("two have the turn")
	}
	first.end(true)
	if !second.spin() {
		t.Fatal("the turn is free and was not taken")
	}
	if third, has := table.beginWrite("key"); has {
		t.Error("the turn was taken by who has spun, and again")
	} else {
		third.end(false)
	}
	second.end(true)
	if n := table.len(); n != 0 {
		t.Errorf("%d records are left", n)
	}
}
