package firn

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
)

const (
	leaseJumpMax = 5 * time.Second
	leaseWaitMax = 50 * time.Millisecond // then Next finds out whether the ids were closed
	leaseSpin    = 100 * time.Microsecond
)

// leaseClock has the clocks of a generator. The steady clock counts from any time.
type leaseClock struct {
	wall   func() time.Time
	steady func() time.Duration
}

func systemLeaseClock() *leaseClock {
	start := time.Now()
	return &leaseClock{time.Now, func() time.Duration { return time.Since(start) }}
}

// idPace is the id clock. It starts at the wall clock and never goes back, except by restart. While the wall clock is
// behind it, the id clock follows the steady clock: at nine tenths of its pace while the difference is at most 5 s. It
// does so, too, while the wall clock is more than 5 s ahead: then that has jumped, and a server must confirm it. Used by
// one goroutine at a time.
type idPace struct {
	clock *leaseClock
	now   time.Time
	seen  time.Duration // steady clock, at now
	jump  time.Duration // how far the wall clock has jumped forward without confirmation; 0: it has not
}

// restart sets the id clock to the wall clock.
func (p *idPace) restart() {
	p.seen, p.jump = p.clock.steady(), 0
	p.now = p.clock.wall().Round(0) // without the monotonic reading
}

func (p *idPace) advance() time.Time {
	steady, wall := p.clock.steady(), p.clock.wall().Round(0)
	passed := max(steady-p.seen, 0)
	p.seen, p.jump = steady, 0
	switch ahead := wall.Sub(p.now) - passed; {
	case ahead > leaseJumpMax:
		p.now, p.jump = p.now.Add(passed), ahead
	case ahead >= 0:
		p.now = wall
	case ahead >= -leaseJumpMax:
		p.now = p.now.Add(passed * 9 / 10)
	default:
		p.now = p.now.Add(passed)
	}
	return p.now
}

// confirm moves the id clock forward to the wall clock of a request that a server has accepted, plus the time since.
func (p *idPace) confirm(wallAtZero time.Time) {
	p.advance()
	if at := wallAtZero.Add(p.seen); at.After(p.now) {
		p.now = at
	}
}

// leasedIDs is the ids of one lease after another.
//
//  1. An id has a tick in [fromTick, untilTick) of its lease.
//  2. Positions (tick and sequence) never fall: the next lease begins in a later tick.
//  3. The id clock decides which tick is used. A wrong clock wastes the interval and repeats no id.
//  4. After the wall clock has jumped forward, there are no ids until a server confirms it.
//  5. After close there are no ids.
type leasedIDs struct {
	clock *leaseClock
	jumps chan struct{} // receives a value for each jump of the wall clock, when next finds it

	mutex     sync.Mutex // of all below
	pace      idPace
	jumpTold  bool        // to jumps
	terms     *leaseTerms // nil: no lease. Replaced, never changed
	first     *leaseTerms // of the first lease: the others have its layout
	why       *Error      // the failure while there is no lease
	trouble   string      // the last failure of a request
	firstTick int64
	tick      int64 // the last one of which an id was issued
	used      int64 // highest tick used under the lease that was ended
	tickEnds  time.Duration
	sequence  int64
	end       int64 // of the sequence; 0: no id was issued under this lease
	shift     int32
	bits      int64
}

func newLeasedIDs(clock *leaseClock) *leasedIDs {
	l := &leasedIDs{clock: clock, jumps: make(chan struct{}, 1), pace: idPace{clock: clock}, tick: -1, used: -1}
	l.pace.restart()
	l.why = &Error{Kind: NoLease, Sentence: "no server has granted one yet", Since: l.pace.now}
	return l
}

// next returns the next id. If the sequence of the tick is used up, it waits for the next tick.
func (l *leasedIDs) next() (int64, error) {
	for {
		l.mutex.Lock()
		if l.sequence >= l.end || l.clock.steady() >= l.tickEnds {
			wait, fault := l.beginTick()
			if fault != nil || wait > 0 {
				l.mutex.Unlock()
				if fault != nil {
					return 0, fault
				}
				pauseFor(wait)
				continue
			}
		}
		id := l.bits | l.sequence<<l.shift
		l.sequence++
		l.mutex.Unlock()
		return id, nil
	}
}

// pauseFor sleeps for less than this time, because a goroutine wakes about leaseSpin late. If little is left, it only
// yields; the caller checks again.
func pauseFor(wait time.Duration) {
	if wait > 2*leaseSpin {
		time.Sleep(min(wait-leaseSpin, leaseWaitMax))
	} else {
		runtime.Gosched()
	}
}

// adopt issues ids of this lease from now on, and ends the lease before, whose highest used tick it returns. It returns
// a sentence if no id may be issued under these terms.
func (l *leasedIDs) adopt(terms *leaseTerms) (used int64, fault string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	switch fault = terms.fault(); {
	case fault != "":
	case l.why.Kind != NoLease:
		fault = l.why.Sentence
	case l.first != nil && !l.first.sameLayout(terms): // ids of two layouts can be equal
		fault = "its layout is not that of this generator's first lease; restart the program if the cluster's has changed"
	case l.hasPassed(terms.start(terms.untilTick)): // a late answer must not replace a lease in use
		fault = "its interval has ended"
	}
	if fault != "" {
		return 0, fault
	}
	if l.first == nil {
		l.first = terms
		l.pace.restart()
	}
	used = l.usedTick()
	l.terms, l.firstTick = terms, max(terms.fromTick, l.tick+1)
	l.shift, l.sequence, l.end = terms.sequenceShift, 0, 0
	l.setPace(terms)
	return used, ""
}

// hasPassed returns whether both the wall clock and the id clock have reached this time.
func (l *leasedIDs) hasPassed(end time.Time) bool {
	return !l.clock.wall().Before(end) && (l.first == nil || !l.pace.advance().Before(end))
}

// setPace raises the id clock to firstTick. If it has followed a wrong wall clock beyond the interval, it returns to the
// corrected one.
func (l *leasedIDs) setPace(terms *leaseTerms) {
	until := terms.start(terms.untilTick)
	if !l.pace.advance().Before(until) && l.clock.wall().Before(until) {
		l.pace.restart()
	}
	if first := terms.start(l.firstTick); l.pace.now.Before(first) {
		l.pace.now = first
	}
}

// extend moves the end of the current lease after a renewal. It ignores an earlier end. An id clock beyond the interval
// returns to the wall clock, but not below the last tick used.
func (l *leasedIDs) extend(untilTick int64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.terms == nil {
		return
	}
	if untilTick > l.terms.untilTick {
		extended := *l.terms
		extended.untilTick = untilTick
		l.terms = &extended
	}
	l.firstTick, l.tickEnds = max(l.firstTick, l.tick), 0
	l.setPace(l.terms)
}

// confirm moves the id clock forward to a wall clock that a server has accepted. The steady clock may lack the time for
// which the machine was suspended.
func (l *leasedIDs) confirm(wallAtZero time.Time) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.pace.confirm(wallAtZero)
	l.tickEnds = 0
}

// close ends the current lease: no id is issued after this has returned. `kind` and `why` are the failure of later
// calls; only after NoLease can another lease follow. It returns the highest tick used.
func (l *leasedIDs) close(kind Kind, why string) (used int64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.used = l.usedTick()
	l.terms, l.sequence, l.end = nil, 0, 0
	if l.why.Kind == NoLease { // the end of the generator is final
		l.why = &Error{Kind: kind, Sentence: why, Since: l.clock.wall().Round(0)}
	}
	return l.used
}

// idTime returns the id clock's time.
func (l *leasedIDs) idTime() time.Time {
	now, _ := l.readClocks()
	return now
}

// readClocks returns the id clock's time, and whether the wall clock has jumped. Before the first lease it cannot.
func (l *leasedIDs) readClocks() (now time.Time, jumped bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.first == nil {
		l.pace.restart()
	}
	now = l.pace.advance()
	l.jumpTold = l.jumpTold && l.pace.jump > 0
	return now, l.pace.jump > 0
}

// current returns the terms of the current lease, or nil.
func (l *leasedIDs) current() *leaseTerms {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.terms
}

// held returns the terms of the current lease, or why there is none or its interval has ended.
func (l *leasedIDs) held() (*leaseTerms, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.terms == nil {
		return nil, l.failure(l.why)
	}
	pace := l.pace // looking changes nothing
	now := pace.advance()
	if pace.jump > 0 {
		return nil, l.jumped(pace)
	}
	if !now.Before(l.terms.start(l.terms.untilTick)) {
		return nil, l.failure(l.expired())
	}
	return l.terms, nil
}

func (l *leasedIDs) noteTrouble(sentence string) {
	l.mutex.Lock()
	l.trouble = sentence
	l.mutex.Unlock()
}

// --- under the mutex -----------------------------------------------------------------------------

// beginTick moves to the tick of the id clock, unless the current one has ids left and the clock has not passed it.
// It returns how long to wait if the sequence is used up.
func (l *leasedIDs) beginTick() (wait time.Duration, fault error) {
	terms := l.terms
	if terms == nil {
		return 0, l.failure(l.why)
	}
	steady := l.clock.steady() // before the other clocks: a pause between must not prolong the tick
	now, told := l.pace.advance(), l.jumpTold
	if l.jumpTold = l.pace.jump > 0; l.jumpTold {
		if !told {
			l.tellJump()
		}
		return 0, l.jumped(l.pace)
	}
	tick := max(floorDiv(now.UnixMilli()-terms.epochMs, int64(terms.tickMs)), l.firstTick)
	if tick <= l.tick {
		if tick = l.tick; l.sequence >= l.end {
			tick++
			wait = max(terms.start(tick).Sub(now), 1)
		}
	}
	if tick >= terms.untilTick {
		return 0, l.failure(l.expired())
	}
	if wait > 0 {
		return wait, nil
	}
	if tick > l.tick {
		l.beginSequence(terms, tick)
	}
	l.tickEnds = steady + terms.start(tick+1).Sub(now)
	return 0, nil
}

// beginSequence starts in the lower half, so that ids of rare calls do not all end with the same bits; at 0 after a
// tick whose sequence was used up.
func (l *leasedIDs) beginSequence(terms *leaseTerms, tick int64) {
	start := int64(0)
	if full := l.tick == tick-1 && l.sequence >= l.end; !full {
		start = rand.Int64N(max(terms.sequenceCount/2, 1))
	}
	l.tick, l.bits = tick, terms.baseBits|tick<<terms.tickShift
	l.sequence, l.end = terms.sequenceFrom+start, terms.sequenceFrom+terms.sequenceCount
}

func (l *leasedIDs) usedTick() int64 {
	switch {
	case l.terms == nil:
		return l.used
	case l.end == 0:
		return l.terms.fromTick - 1
	}
	return l.tick
}

func (l *leasedIDs) expired() *Error {
	return &Error{Kind: NoLease, Since: l.terms.start(l.terms.untilTick),
		Sentence: "that of machine id " + itoa(l.terms.machine) + " ended, and no server extended it"}
}

func (l *leasedIDs) tellJump() {
	select {
	case l.jumps <- struct{}{}:
	default:
	}
}

func (l *leasedIDs) jumped(pace idPace) error {
	return &Error{Kind: NoLease, Since: pace.now, Sentence: fmt.Sprintf("the wall clock has jumped forward by %d s, "+
		"and no server has confirmed it", pace.jump/time.Second) + l.lastFailure()}
}

func (l *leasedIDs) failure(why *Error) error {
	told := *why
	if told.Kind == NoLease {
		told.Sentence = "no lease of a machine id since " + utcText(told.Since) + ": " + told.Sentence + l.lastFailure()
	}
	return &told
}

func (l *leasedIDs) lastFailure() string {
	if l.trouble == "" {
		return ""
	}
	return "; last failure: " + l.trouble
}

func utcText(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05") + " UTC" }

func floorDiv(number, by int64) int64 {
	if number < 0 {
		return -((-number + by - 1) / by)
	}
	return number / by
}
