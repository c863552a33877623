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
// 20 calls failed. An ill server is out: it rests, or, where its owner does not allow that, is asked after
// the fit ones. Either lasts 1 s at first, twice as long each time up to 30 s; then its status is asked.
// An answer to a call ends that and forgets all failures; a good status does, too, but the next time out
// is longer all the same. The owner guards it.
type health struct {
	out, rests bool
	times      spell
	inARow     int
	window     uint32 // the last calls, newest in bit 0; 1: failed
}

func (h *health) ill() bool {
	return h.inARow >= illInARow || bits.OnesCount32(h.window)*2 >= illWindow
}

func (h *health) resting() bool { return h.out && h.rests }

// answered records a successful call to a server that is in use.
func (h *health) answered() {
	h.inARow = 0
	h.window = h.window << 1 & (1<<illWindow - 1)
}

// seen: its status was good.
func (h *health) seen() { *h = health{times: h.times} }

func (h *health) failed(times int) {
	for ; times > 0; times-- {
		h.inARow++
		h.window = (h.window<<1 | 1) & (1<<illWindow - 1)
	}
}

// takeOut begins a time out; its length.
func (h *health) takeOut(rests bool, now time.Time) time.Duration {
	h.out, h.rests = true, rests
	return h.times.next(now, firstRest, longestRest)
}

// spell is how long something that went wrong is left alone: twice as long each time, up to a longest, and
// spread over the upper half, so that clients do not return together. When nothing went wrong for as long as
// the longest, the next one is a first one again.
type spell struct {
	length time.Duration
	until  time.Time
}

func (s *spell) next(now time.Time, first, longest time.Duration) time.Duration {
	if now.After(s.until.Add(longest)) {
		s.length = 0
	}
	s.length = clamp(2*s.length, first, longest)
	spread := s.length/2 + time.Duration(drawBelow(int64(s.length/2)+1))
	s.until = now.Add(spread)
	return spread
}

const (
	retriesPerCall   = 0.2
	retriesPerSecond = 10
	retriesMost      = 200
)

// retryBudget limits how many requests all calls together add as retries, so that clients do not multiply
// the load on servers that are already slow. The owner guards it.
type retryBudget struct {
	spent float64 // of retriesMost
	last  time.Time
}

func (b *retryBudget) earn(retries float64) {
	if b.spent -= retries; b.spent < 0 {
		b.spent = 0
	}
}

// take pays for one retry; false when the budget is exhausted.
func (b *retryBudget) take(now time.Time) bool {
	b.earn(retriesPerSecond * now.Sub(b.last).Seconds())
	b.last = now
	if b.spent > retriesMost-1 {
		return false
	}
	b.spent++
	return true
}
