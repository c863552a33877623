package firn

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"time"
)

const (
	failuresInARow  = 3
	failureWindow   = 20
	firstEjection   = time.Second
	longestEjection = 30 * time.Second
)

// health is the recent failures of a server. After 3 failures in a row, or when half of its last
// 20 calls failed, the server is out: it is ejected, or, if half of the servers already are, it is called
// after the healthy ones. It is probed after 1 s, doubling to 30 s. An answer to a call ends this and clears all
// failures. A good status does, too, but keeps the doubled time. The owner guards it.
type health struct {
	out, ejected bool
	times        backoff
	inARow       int
	window       uint32 // the last calls, newest in bit 0; 1: failed
}

func (h *health) tooManyFailures() bool {
	return h.inARow >= failuresInARow || bits.OnesCount32(h.window)*2 >= failureWindow
}

// answered records a successful call to a server that is in use.
func (h *health) answered() {
	h.inARow = 0
	h.window = h.window << 1 & (1<<failureWindow - 1)
}

// seen records a good status.
func (h *health) seen() { *h = health{times: h.times} }

func (h *health) failed(times int) {
	for ; times > 0; times-- {
		h.inARow++
		h.window = (h.window<<1 | 1) & (1<<failureWindow - 1)
	}
}

// takeOut ejects the server, or calls it last, and returns for how long.
func (h *health) takeOut(eject bool, now time.Time) time.Duration {
	h.out, h.ejected = true, eject
	return h.times.next(now, firstEjection, longestEjection)
}

// clamp returns the value, limited to the range.
func clamp[T cmp.Ordered](value, least, most T) T { return min(max(value, least), most) }

// backoff doubles up to a longest, drawn from the upper half, so that clients do not return
// together. After a time without failures of the longest backoff, it starts again from the first.
type backoff struct {
	length time.Duration
	until  time.Time
}

func (s *backoff) next(now time.Time, first, longest time.Duration) time.Duration {
	if now.After(s.until.Add(longest)) {
		s.length = 0
	}
	s.length = clamp(2*s.length, first, longest)
	spread := s.length/2 + time.Duration(rand.Int64N(int64(s.length/2)+1))
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
