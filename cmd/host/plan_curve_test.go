package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"
)

// TestPlanCurve: each budget is told of once it is done, and after Ctrl-C none is begun.
func TestPlanCurve(t *testing.T) {
	budgets := make([]uint64, 50)
	ctx, cancel := context.WithCancel(t.Context())
	r, told := &planReport{}, 0
	count := func(done, of int) {
		if told++; done != told || of != len(budgets) {
			t.Errorf("have %d of %d told, want %d of %d", done, of, told, len(budgets))
		}
	}
	if err := r.fillCurve(ctx, budgets, count, func(uint64) (planPoint, error) { return planPoint{Budget: 7}, nil }); err != nil || told != len(budgets) || r.Curve[49].Budget != 7 {
		t.Errorf("have %v, %d told", err, told)
	}
	cancel()
	err := r.fillCurve(ctx, budgets, count, func(uint64) (planPoint, error) {
		t.Error("begun after the end")
		return planPoint{}, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("have %v", err)
	}
}

func TestProgressBudgets(t *testing.T) {
	var b bytes.Buffer
	p := &progress{w: &b, doing: "simulating", next: time.Now().Add(time.Hour)}
	p.budgets(1, 22)
	p.next = time.Now()
	p.budgets(2, 22)
	if want := "simulating: 2 of 22 budgets\n"; b.String() != want {
		t.Errorf("have %q, want %q", &b, want)
	}
}
