package firn

import (
	"math/bits"
	"time"
)

const (
	illInARow   = 3
	illWindow   = 20
	firstRest   = time.Second
	longestRest = 30 * time.Second
)

// health says whether a server answers. It is ill after 3 failures in a row, or when half of its last
// 20 calls failed. An ill server rests for 1 s at first, twice as long each time up to 30 s, spread
// over the upper half; any success ends that and forgets all failures. The owner guards it, and sees
// to it that never more than half rest.
type health struct {
	restUntil time.Time // zero: it does not rest
	rested    time.Duration
	inARow    int
	window    uint32 // the last calls, newest in bit 0; 1: failed
}

func (h *health) ill() bool {
	return h.inARow >= illInARow || bits.OnesCount32(h.window)*2 >= illWindow
}

func (h *health) resting() bool { return !h.restUntil.IsZero() }

// answered: a call went well, on a server that is not ill.
func (h *health) answered() {
	h.inARow = 0
	h.window = h.window << 1 & (1<<illWindow - 1)
}

func (h *health) failed(times int) {
	for ; times > 0; times-- {
		h.inARow++
		h.window = (h.window<<1 | 1) & (1<<illWindow - 1)
	}
}

// rest begins a rest; its length.
func (h *health) rest(now time.Time) time.Duration {
	h.rested = clamp(2*h.rested, firstRest, longestRest)
	length := upperHalf(h.rested)
	h.restUntil = now.Add(length)
	return length
}

func upperHalf(of time.Duration) time.Duration {
	return of/2 + time.Duration(drawBelow(int64(of/2)+1))
}
