package firn

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// leaseEpoch is that of the layout firn; tests begin at leaseBegin.
var (
	leaseEpoch = time.UnixMilli(1_704_067_200_000)
	leaseBegin = leaseEpoch.Add(1_000_000 * time.Second)
)

// testClock has clocks that a test sets. They advance together; step moves the wall clock alone.
type testClock struct {
	wall   time.Time
	steady time.Duration
	paused func() // called after each reading of the wall clock
}

func newTestClock() *testClock { return &testClock{wall: leaseBegin, steady: 5000 * time.Second} }

func (c *testClock) lease() *leaseClock {
	return &leaseClock{func() time.Time {
		read := c.wall
		if c.paused != nil {
			c.paused()
		}
		return read
	}, func() time.Duration { return c.steady }}
}

func (c *testClock) advance(by time.Duration) {
	c.wall, c.steady = c.wall.Add(by), c.steady+by
}

func (c *testClock) step(by time.Duration) { c.wall = c.wall.Add(by) }

func (c *testClock) tick() int64 { return c.wall.Sub(leaseEpoch).Milliseconds() }

// testTerms are of the layout firn: time:41 machine:10 sequence:12.
func testTerms(machine int32, change func(*leaseTerms)) *leaseTerms {
	now := leaseBegin.Sub(leaseEpoch).Milliseconds()
	terms := &leaseTerms{lease: "lease-" + itoa(machine), machine: machine, baseBits: int64(machine) << 12, tickShift: 22,
		sequenceBits: 12, sequenceCount: 4096, tickMs: 1, epochMs: leaseEpoch.UnixMilli(), fromTick: now,
		untilTick: now + 15_000, renewInMs: 5_000, server: "10.0.0.1:7609"}
	if change != nil {
		change(terms)
	}
	return terms
}

func tickOf(id int64) int64 { return id >> 22 }

type idsRig struct {
	*testing.T
	clock *testClock
	ids   *leasedIDs
	terms *leaseTerms
}

func newIDsRig(t *testing.T) *idsRig {
	clock := newTestClock()
	return &idsRig{t, clock, newLeasedIDs(clock.lease()), testTerms(17, nil)}
}

func (r *idsRig) adopt(terms *leaseTerms) int64 {
	r.Helper()
	used, fault := r.ids.adopt(terms)
	if fault != "" {
		r.Fatal(fault)
	}
	return used
}

func (r *idsRig) next() int64 {
	r.Helper()
	id, err := r.ids.next()
	if err != nil {
		r.Fatal(err)
	}
	return id
}

// fails returns the failure of the next call.
func (r *idsRig) fails(kind Kind, words string) *Error {
	r.Helper()
	id, err := r.ids.next()
	told, is := err.(*Error)
	if !is || told.Kind != kind || !strings.Contains(told.Error(), words) {
		r.Fatalf("%d, %v", id, err)
	}
	return told
}

func ascends(ids []int64) bool {
	return slices.IsSorted(ids) && len(slices.Compact(slices.Clone(ids))) == len(ids)
}

func TestIDsHaveTheMachineIDAndTheTicksOfTheTerms(t *testing.T) {
	r := newIDsRig(t)
	r.adopt(r.terms)
	id := r.next()
	if id&^4095 != r.terms.fromTick<<22|17<<12 || r.next() != id+1 || r.next() != id+2 {
		t.Fatal(id)
	}
}

func TestUsesOnlyItsPartOfTheSequence(t *testing.T) {
	r := newIDsRig(t)
	r.adopt(testTerms(17, func(terms *leaseTerms) { terms.sequenceFrom, terms.sequenceCount = 100, 4 }))
	for i := 0; i < 50; i++ {
		r.clock.advance(time.Millisecond)
		if low := r.next() & 4095; low < 100 || low > 103 {
			t.Fatal(low)
		}
	}
}

func TestNoIDBeforeTheFirstLease(t *testing.T) {
	r := newIDsRig(t)
	told := r.fails(NoLease, "no lease of a machine id since 2024-01-12 13:46:40 UTC: no server has granted one yet")
	if !told.Since.Equal(leaseBegin) {
		t.Fatal(told.Since)
	}
}

func TestIntervalEndsAndSaysSinceWhen(t *testing.T) {
	r := newIDsRig(t)
	r.adopt(r.terms)
	r.clock.advance(14_999 * time.Millisecond)
	if tick := tickOf(r.next()); tick != r.terms.untilTick-1 {
		t.Fatal(tick)
	}
	r.ids.noteTrouble("10.0.0.1:7609 timeout")
	r.clock.advance(time.Millisecond)
	told := r.fails(NoLease, "machine id 17 ended, and no server extended it; last failure: 10.0.0.1:7609 timeout")
	if !told.Since.Equal(leaseBegin.Add(15 * time.Second)) {
		t.Fatal(told.Since)
	}
}

// The pause comes after the clock was read. The tick that was read is this lease's forever.
func TestPauseInsideACallReturnsNoIDOutsideTheInterval(t *testing.T) {
	r := newIDsRig(t)
	r.adopt(r.terms)
	r.clock.advance(5 * time.Millisecond)
	r.clock.paused = func() { r.clock.advance(time.Hour) }
	if tick := tickOf(r.next()); tick != r.terms.fromTick+5 {
		t.Fatal(tick)
	}
	r.clock.paused = nil
	r.fails(NoLease, "ended")
}

func TestExhaustedSequenceWaitsForTheNextTick(t *testing.T) {
	clock := systemLeaseClock()
	ids := newLeasedIDs(clock)
	now := time.Since(leaseEpoch).Milliseconds()
	terms := testTerms(17, func(terms *leaseTerms) {
		terms.fromTick, terms.untilTick, terms.sequenceCount = now, now+600_000, 8
	})
	if _, fault := ids.adopt(terms); fault != "" {
		t.Fatal(fault)
	}
	taken := make([]int64, 400)
	for i := range taken {
		id, err := ids.next()
		if err != nil {
			t.Fatal(err)
		}
		taken[i] = id
	}
	if !ascends(taken) || tickOf(taken[399])-tickOf(taken[0]) < 49 {
		t.Fatal(taken)
	}
}

func TestExhaustedLastTickFailsInsteadOfWaiting(t *testing.T) {
	r := newIDsRig(t)
	r.adopt(r.terms)
	r.clock.advance(14_999 * time.Millisecond)
	for i := 0; ; i++ {
		if _, err := r.ids.next(); err != nil {
			break
		}
		if i > 4096 {
			t.Fatal("more ids than a tick has")
		}
	}
	r.fails(NoLease, "ended")
}

func TestRareIDsBeginAtDifferentSequences(t *testing.T) {
	r, low := newIDsRig(t), map[int64]bool{}
	r.adopt(r.terms)
	for i := 0; i < 100; i++ {
		r.clock.advance(10 * time.Millisecond)
		low[r.next()&4095] = true
	}
	if len(low) < 50 {
		t.Fatal(len(low))
	}
}

func TestLeaseOfAnotherLayoutIsNotAdopted(t *testing.T) {
	r := newIDsRig(t)
	r.adopt(r.terms)
	for _, change := range []func(*leaseTerms){
		func(t *leaseTerms) { t.epochMs++ },
		func(t *leaseTerms) { t.tickMs++ },
		func(t *leaseTerms) { t.tickShift++ },
		func(t *leaseTerms) { t.sequenceShift++; t.baseBits = 0 },
		func(t *leaseTerms) { t.sequenceBits--; t.sequenceCount /= 2 },
	} {
		if _, fault := r.ids.adopt(testTerms(18, change)); !strings.Contains(fault, "layout is not that of") {
			t.Error(fault)
		}
	}
	r.next()
	r.ids.close(NoLease, "it was revoked")
	if _, fault := r.ids.adopt(testTerms(18, func(t *leaseTerms) { t.epochMs++ })); !strings.Contains(fault, "layout") {
		t.Error(fault)
	}
	r.adopt(testTerms(18, nil))
}

func TestTermsAreChecked(t *testing.T) {
	for i, change := range []func(*leaseTerms){
		func(t *leaseTerms) { t.lease = "" },
		func(t *leaseTerms) { t.server = "nowhere" },
		func(t *leaseTerms) { t.tickMs = 0 },
		func(t *leaseTerms) { t.tickMs = 5_001 },
		func(t *leaseTerms) { t.untilTick = t.fromTick },
		func(t *leaseTerms) { t.fromTick = -1 },
		func(t *leaseTerms) { t.baseBits |= 1 },
		func(t *leaseTerms) { t.baseBits |= 1 << 22 },
		func(t *leaseTerms) { t.tickShift = 11 },
		func(t *leaseTerms) { t.tickShift = 60 },
		func(t *leaseTerms) { t.tickShift = -1 },
		func(t *leaseTerms) { t.sequenceFrom = -1 },
		func(t *leaseTerms) { t.sequenceFrom = 1 },
		func(t *leaseTerms) { t.sequenceCount = 0 },
		func(t *leaseTerms) { t.sequenceShift = 21 },
		func(t *leaseTerms) { t.sequenceShift = -1 },
		func(t *leaseTerms) { t.sequenceBits = 63 },
		func(t *leaseTerms) { t.untilTick = 1 << 62 },
		func(t *leaseTerms) { t.epochMs = 1 << 62 },
	} {
		if fault := testTerms(17, change).fault(); fault == "" {
			t.Error(i)
		}
	}
	vesta := testTerms(5, func(t *leaseTerms) {
		t.tickShift, t.sequenceShift, t.sequenceBits, t.sequenceCount = 30, 10, 20, 1<<20
		t.baseBits, t.fromTick, t.untilTick = 3<<60|5, 1, 1<<30-1
	})
	if fault := vesta.fault(); fault != "" {
		t.Error(fault)
	}
}

// --- closing -------------------------------------------------------------------------------------

func TestNoIDAndNoLeaseAfterClose(t *testing.T) {
	r := newIDsRig(t)
	r.adopt(r.terms)
	used := tickOf(r.next())
	if told := r.ids.close(Closed, "the generator was closed"); told != used {
		t.Fatal(told)
	}
	if told := r.ids.close(NoLease, "it was revoked"); told != used {
		t.Fatal(told)
	}
	r.fails(Closed, "the generator was closed")
	if _, fault := r.ids.adopt(testTerms(18, nil)); fault == "" {
		t.Fatal("a lease after the end")
	}
}

func TestCloseEndsAWaitForTheNextTick(t *testing.T) {
	r := newIDsRig(t)
	r.adopt(testTerms(17, func(terms *leaseTerms) {
		terms.tickMs, terms.epochMs, terms.fromTick, terms.untilTick = 5_000, leaseBegin.UnixMilli(), 0, 100
		terms.sequenceCount = 1
	}))
	r.next()
	failed := make(chan error)
	go func() {
		_, err := r.ids.next()
		failed <- err
	}()
	select {
	case err := <-failed:
		t.Fatal(err)
	case <-time.After(100 * time.Millisecond):
	}
	r.ids.close(Closed, "the generator was closed")
	if err := <-failed; err.(*Error).Kind != Closed {
		t.Fatal(err)
	}
}

func TestGoroutinesTakeDifferentLocalIDs(t *testing.T) {
	ids, now := newLeasedIDs(systemLeaseClock()), time.Since(leaseEpoch).Milliseconds()
	_, _ = ids.adopt(testTerms(17, func(terms *leaseTerms) { terms.fromTick, terms.untilTick = now, now+600_000 }))
	taken := make([][]int64, 4)
	var group sync.WaitGroup
	for i := range taken {
		group.Add(1)
		go func() {
			defer group.Done()
			for j := 0; j < 50_000; j++ {
				if id, err := ids.next(); err == nil {
					taken[i] = append(taken[i], id)
				}
			}
		}()
	}
	group.Wait()
	all := map[int64]bool{}
	for _, mine := range taken {
		if !ascends(mine) {
			t.Error("the ids of a goroutine do not ascend")
		}
		for _, id := range mine {
			all[id] = true
		}
	}
	if len(all) != 200_000 {
		t.Fatal(len(all))
	}
}

func BenchmarkLocalID(b *testing.B) {
	ids, now := newLeasedIDs(systemLeaseClock()), time.Since(leaseEpoch).Milliseconds()
	_, _ = ids.adopt(testTerms(17, func(terms *leaseTerms) { terms.fromTick, terms.untilTick = now, now+600_000 }))
	for i := 0; i < b.N; i++ {
		_, _ = ids.next()
	}
}
