package synth

import "math"

// residual predicts the sizes of what is in the residual stream, in units of an embedding value. Blocks write to the rest
// channels only. Those are divided into groups of 16: one for each layer's mixer and one for its feed-forward block, which
// write strongly there and weakly to all other groups. A router reads the groups of the two blocks just before it, which a
// guess made a layer earlier cannot know; the head ranks tokens by the mixers' groups, which hold what came before the
// last token: so a greedy continuation does not run in circles.
type residual struct {
	hidden, layers int
}

const (
	groupWidth  = 16
	mixerWrites = 2.0  // root mean square of a mixer's write to its group, and
	ffnWrites   = 1.0  // of a feed-forward block's
	weak        = 0.15 // and of any block's to the other groups
)

// group is a block's own group: its first channel, and how strongly the block writes there.
type group struct {
	at    int
	write float64
}

func (g group) has(channel int) bool { return channel >= g.at && channel < g.at+groupWidth }

func (r residual) mixer(layer int) group { return r.group(2*layer, mixerWrites) }
func (r residual) ffn(layer int) group   { return r.group(2*layer+1, ffnWrites) }

func (r residual) group(n int, write float64) group {
	return group{restAt + n%((r.hidden-restAt)/groupWidth)*groupWidth, write}
}

// before are the groups of the blocks that come just before layer i's router.
func (r residual) before(i int) []group {
	if i == 0 {
		return []group{r.mixer(0)}
	}
	return []group{r.mixer(i), r.ffn(i - 1)}
}

// size is the root mean square of a group that its block has written to, after the weak writes of others.
func (g group) size(others int) float64 {
	return hypot(1, g.write, weak*math.Sqrt(float64(max(others, 0))))
}

// writes is how strongly a block writes to a channel.
func (g group) writes(channel int) float64 {
	switch {
	case channel < restAt:
		return 0
	case g.has(channel):
		return g.write
	}
	return weak
}

// rms is the root mean square over all channels of what the block writes.
func (g group) rms(hidden int) float64 {
	others := float64(hidden - restAt - groupWidth)
	return math.Sqrt((groupWidth*g.write*g.write + others*weak*weak) / float64(hidden))
}

// rms is the root mean square over all channels where layer i's router reads; with i the number of layers, about that at
// the head.
func (r residual) rms(i int) float64 {
	sum := 1 - codeWidth*(2-square(constantSize)-square(topicSize))/float64(r.hidden)
	for layer := range i {
		sum += square(r.mixer(layer).rms(r.hidden)) + square(r.ffn(layer).rms(r.hidden))
	}
	return math.Sqrt(sum + square(r.mixer(i).rms(r.hidden)))
}

// mixed says whether a channel is in a mixer's group.
func (r residual) mixed(channel int) bool {
	for i := range r.layers {
		if r.mixer(i).has(channel) {
			return true
		}
	}
	return false
}

func square(x float64) float64 { return x * x }
