package program

import "testing"

func TestSmallIsValid(t *testing.T) {
	b := small(t)
	if err := b.validatePlan(); err != nil {
		t.Error(err)
	}
	if err := b.validate(testBounds()); err != nil {
		t.Error(err)
	}
	if u := Unread(b.header, b.plan); len(u) != 0 {
		t.Errorf("unread: have %v, want none", u)
	}
}
