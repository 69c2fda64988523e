// Package stream is the expert slot pool: which expert's record lies in which
// slot of which bank on the GPU, what is being read, what may be evicted.
//
// A bank is one GPU buffer of equal slots; it serves the MoE layers whose expert
// records have one layout, and evicts by itself. The package knows no GPU and no
// file: a [Loader] fills slots.
//
// It does not choose which experts to ask for, nor which to read ahead ([Pool.Guess]).
//
// Start at [Divide] (a byte budget becomes banks), [New] and [Pool.Ensure].
package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Limits on what New and Divide accept, far above any model, so that a bad file
// can neither overflow a sum of bytes nor make a huge table.
const (
	maxLayer   = 1 << 16
	maxExperts = 1 << 20 // over all layers
	maxRecord  = 1 << 40 // bytes
)

var errClosed = errors.New("the pool is closed")

// Key names one expert of one MoE layer, numbered as in the model.
type Key struct {
	Layer, Expert int
}

// String returns the key as errors print it.
func (k Key) String() string { return fmt.Sprintf("layer %d expert %d", k.Layer, k.Expert) }

// Loader fills slots. Its methods are called from at most Config.Readers goroutines at once, and never at once for one slot.
type Loader interface {
	// Begin begins to load the record of key into a slot of a bank (both numbered from 0; bank as in Config.Banks), and
	// returns the pieces, at least 1, that it can be read in at once. It may wait for memory, which two transfers for
	// each reader must have. The context ends when the pool closes. It must not need a goroutine that waits in Ensure.
	Begin(ctx context.Context, key Key, bank, slot int) (t Transfer, pieces int, err error)
}

// Transfer is a record on its way into a slot.
type Transfer interface {
	// Read reads a piece, numbered from 0. Different pieces are read at once, in any order, each once.
	Read(ctx context.Context, piece int) error
	// End ends the transfer, with nil when all pieces are read: then it returns when the record's upload is ordered ahead
	// of any later submit. With another error, a piece's or the pool's, it gives up without waiting for anything; what it
	// returns then is ignored.
	End(err error) error
}

// Bank is one buffer of Slots equal slots and the MoE layers it serves.
type Bank struct {
	Layers      []int // as numbered in the model
	Experts     int   // per layer
	RecordBytes int64 // bytes of a slot, which one load fills
	Slots       int
}

// Config describes a pool.
type Config struct {
	Banks   []Bank
	Readers int                   // pieces read at once, at least 1
	Loader  Loader                // fills the slots
	Policy  func(keys int) Policy // makes each bank's eviction policy; nil is NewLRU
}

// Pool keeps expert records in the slots of its banks. All methods may be called
// from any goroutine.
type Pool struct {
	loader  Loader
	readers int
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // reader goroutines
	work    sync.Cond      // they wait for it, with mu

	mu       sync.Mutex // guards all below, and the banks
	banks    []*bank
	places   []place // by layer number; no bank where the layer has no experts
	counters []Counters
	queue    loadQueue // what calls wait for
	guesses  loadQueue
	open     []*load   // begun, with pieces that no reader has taken
	spare    []*load   // ended, for re-use
	alive    int       // reader goroutines
	idle     int       // of them waiting for work, and not woken yet
	working  int       // of them at a load
	guessing int       // of them at a guess
	asked    int       // loads that calls wait for, or waited
	absent   int       // keys that are not resident
	sets     []*pinSet // released, for re-use
	closed   bool
}

// place says where a layer's experts are kept.
type place struct {
	bank     *bank
	first    int // id in the bank of the layer's expert 0
	counters int // index into Pool.counters
}

// New makes an empty pool.
//
// It fails where a bank is malformed (no layer, slot or expert, a negative or huge
// number) or a layer is served twice.
func New(c Config) (*Pool, error) {
	if c.Readers < 1 {
		return nil, fmt.Errorf("stream: readers: have %d, want at least 1", c.Readers)
	}
	if c.Loader == nil {
		return nil, errors.New("stream: loader: have none, want one")
	}
	if c.Policy == nil {
		c.Policy = NewLRU
	}
	p := &Pool{loader: c.Loader, readers: c.Readers}
	p.work.L = &p.mu
	if err := checkBanks(c.Banks); err != nil {
		return nil, err
	}
	for i, b := range c.Banks {
		p.addBank(i, b, c.Policy(len(b.Layers)*b.Experts))
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

func checkBanks(banks []Bank) error {
	seen := layerSet{}
	for i, b := range banks {
		if err := seen.add(b.Layers, b.Experts, b.RecordBytes); err != nil {
			return fmt.Errorf("stream: bank %d: %w", i, err)
		}
		if n := len(b.Layers) * b.Experts; b.Slots < 1 || b.Slots > n {
			return fmt.Errorf("stream: bank %d: have %d slots, want 1 to %d, the experts it serves", i, b.Slots, n)
		}
	}
	return nil
}

func (p *Pool) addBank(index int, c Bank, policy Policy) {
	b := newBank(index, c, policy, len(p.counters))
	p.banks = append(p.banks, b)
	for i, layer := range c.Layers {
		if layer >= len(p.places) {
			p.places = append(p.places, make([]place, layer+1-len(p.places))...)
		}
		p.places[layer] = place{bank: b, first: i * c.Experts, counters: len(p.counters)}
		p.counters = append(p.counters, Counters{Layer: layer})
		p.absent += c.Experts
	}
}

// Tick tells the policies that a step of the model with so many tokens begins. Call it once a step, before
// its first Ensure; policies that know no time don't need it.
func (p *Pool) Tick(tokens int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.banks {
		b.policy.Tick(tokens)
	}
}

// Close ends the pool: reads that have not begun are dropped, waiting calls of
// Ensure fail, and Close returns when no transfer runs any more, so that the buffers
// may be destroyed. Pins may still be released. Closing twice is harmless.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	for _, b := range p.banks {
		b.wake()
	}
	p.wake(p.idle) // to end
	p.mu.Unlock()
	p.cancel()
	p.running.Wait()
}

// layerSet checks that each layer is served once and that all numbers are sane.
type layerSet struct {
	layers  map[int]bool
	experts int
}

func (s *layerSet) add(layers []int, experts int, record int64) error {
	switch {
	case len(layers) == 0:
		return errors.New("layers: have none, want at least 1")
	case experts < 1 || experts > maxExperts:
		return fmt.Errorf("experts per layer: have %d, want 1 to %d", experts, maxExperts)
	case record < 1 || record > maxRecord:
		return fmt.Errorf("record bytes: have %d, want 1 to %d", record, int64(maxRecord))
	case len(layers) > (maxExperts-s.experts)/experts:
		return fmt.Errorf("experts of all layers: have %d and %d times %d more, want at most %d",
			s.experts, len(layers), experts, maxExperts)
	}
	if s.layers == nil {
		s.layers = map[int]bool{}
	}
	for _, l := range layers {
		if l < 0 || l >= maxLayer {
			return fmt.Errorf("layer: have %d, want 0 to %d", l, maxLayer-1)
		}
		if s.layers[l] {
			return fmt.Errorf("layer %d: have it twice, want each layer in one place", l)
		}
		s.layers[l] = true
	}
	s.experts += len(layers) * experts
	return nil
}
