package store_test

import (
	"errors"
	"os"
	"testing"

	"github.com/sluicehost/sluice/core/store"
)

// A file system without direct reads says so.
func TestNoDirect(t *testing.T) {
	const file = "/proc/self/status"
	err := store.OpenRandom(store.Reading{Readers: 1, Direct: true}, func(flag int) (*os.File, error) { return os.OpenFile(file, flag, 0) })
	if !errors.Is(err, store.ErrNoDirect) {
		t.Errorf("have %v", err)
	}
	err = store.OpenRandom(store.Reading{Readers: 1, Direct: true}, func(flag int) (*os.File, error) { return os.OpenFile(file+"/nowhere", flag, 0) })
	if err == nil || errors.Is(err, store.ErrNoDirect) {
		t.Errorf("have %v", err)
	}
}
