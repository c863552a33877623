package firn

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// testLease is a lease of a testServer.
type testLease struct {
	terms leaseTerms
	turn  string // the last accepted one
}

// testServer has the rules of a server for tokens and turns. `say` replaces its next answers, unless nil.
// `after` does so after the request has taken effect, as a lost answer does.
type testServer struct {
	address string
	world   *leaseWorld
	say     []any // *failure, *leaseTerms or nil
	after   []*failure
	leases  map[string]*testLease // by token
	ended   map[string]string     // by lease: turn and used tick
	renew   func() *failure       // replaces all answers to renewals
	paused  bool                  // each request lasts until its limit
	bound   int64                 // tick: of leases that are ending
}

func (s *testServer) answer(a *ask) (*leaseTerms, *failure) {
	if len(s.say) > 0 {
		said := s.say[0]
		s.say = s.say[1:]
		switch said := said.(type) {
		case *failure:
			return nil, said
		case *leaseTerms:
			return said, nil
		}
	}
	terms, problem := s.act(a)
	if len(s.after) > 0 {
		terms, problem, s.after = nil, s.after[0], s.after[1:]
	}
	return terms, problem
}

func (s *testServer) act(a *ask) (*leaseTerms, *failure) {
	now := s.world.clock.tick()
	switch a.method {
	case methodLease:
		held := s.leases[a.lease.token]
		if held == nil {
			s.world.machines++
			terms := testTerms(s.world.machines, nil)
			terms.server, terms.fromTick, terms.untilTick = s.address, now, now+min(15_000, int64(*a.lease.aheadMs))
			held = &testLease{*terms, ""}
			s.leases[a.lease.token] = held
		}
		return held.copy(), nil
	case methodRenewLease:
		if s.renew != nil {
			return nil, s.renew()
		}
		for _, held := range s.leases {
			if held.terms.lease == a.lease.lease {
				return s.renewed(held, a)
			}
		}
		return nil, leaseRefused(leaseUnknown, "")
	}
	s.ended[a.lease.lease] = fmt.Sprint(a.lease.turn, " ", *a.lease.usedTick)
	return nil, nil
}

func (s *testServer) renewed(held *testLease, a *ask) (*leaseTerms, *failure) {
	if a.lease.turn != held.turn {
		if a.lease.acknowledged != held.turn {
			return nil, leaseRefused(leaseRevoked, "")
		}
		held.turn = a.lease.turn
		until := s.world.clock.tick() + int64(*a.lease.aheadMs)
		if held.terms.ending {
			until = max(held.terms.untilTick, min(until, s.bound))
		}
		held.terms.untilTick, held.terms.renewInMs = until, int32(max(100, (until-s.world.clock.tick())/3))
	}
	return held.copy(), nil
}

func (l *testLease) copy() *leaseTerms {
	terms := l.terms
	return &terms
}

func lost() *failure        { return failed(Timeout, "") }
func unreachable() *failure { return failed(Unreachable, "refused") }
func notReady() *failure {
	return &failure{end: WasRefused, reason: NotReady, detail: "the registry is unreachable",
		retryAfter: 700 * time.Millisecond, anotherMayHelp: true}
}
func claiming() *failure {
	problem := notReady()
	problem.anotherMayHelp = false
	return problem
}
func advises(wait time.Duration) *failure {
	problem := notReady()
	problem.retryAfter = wait
	return problem
}
func lacksMethod() *failure {
	problem := failed(WrongService, "it does not know the method")
	problem.lacksMethod = true
	return problem
}
func leaseRefused(fault leaseFault, server string) *failure {
	return &failure{end: WasRefused, leaseFault: fault, leaseServer: server, detail: "as the test says"}
}

// leaseWorld is a lessee and its servers, "1", "2" and so on.
type leaseWorld struct {
	*testing.T
	clock    *testClock
	servers  []*testServer
	known    []*testServer
	unlisted string // address that no list has
	ids      *leasedIDs
	lessee   *lessee
	machines int32
	drawn    int
	lost     []string
	issued   []int64
}

func newLeaseWorld(t *testing.T, servers int) *leaseWorld {
	w := &leaseWorld{T: t, clock: newTestClock(), machines: 16}
	for i := 1; i <= servers; i++ {
		w.servers = append(w.servers, &testServer{address: fmt.Sprintf("10.0.0.%d:7609", i), world: w,
			leases: map[string]*testLease{}, ended: map[string]string{}})
	}
	w.known, w.ids = w.servers, newLeasedIDs(w.clock.lease())
	w.lessee = &lessee{name: "checkout", aheadMs: 60_000, ids: w.ids, clock: w.clock.lease(),
		onLost: func(loss LeaseLoss) { w.lost = append(w.lost, loss.Reason) },
		draw: func() string {
			w.drawn++
			return drawn(w.drawn)
		},
		pick: func(tried []string) string {
			for _, one := range w.known {
				if !slices.Contains(tried, one.address) {
					return one.address
				}
			}
			return ""
		},
		listed: func(address string) bool {
			return address != w.unlisted && slices.ContainsFunc(w.servers, func(one *testServer) bool {
				return one.address == address
			})
		}}
	return w
}

func drawn(number int) string { return fmt.Sprintf("%032x", number) }

// leased returns a world in which the first server has granted a lease.
func leased(t *testing.T) (w *leaseWorld, a, b *testServer) {
	w = newLeaseWorld(t, 2)
	w.turn()
	t.Cleanup(w.check)
	return w, w.servers[0], w.servers[1]
}

// turn sends what is due now. It returns the requests: server, method, token or turn, and acknowledged turn.
func (w *leaseWorld) turn() (sent []string) {
	w.Helper()
	for order := w.lessee.due(); order != nil; order = w.lessee.due() {
		if len(sent) > 50 {
			w.Fatal("requests without end")
		}
		number := slices.IndexFunc(w.servers, func(one *testServer) bool { return one.address == order.address })
		said := order.ask.lease
		sent = append(sent, strings.TrimSpace(fmt.Sprintf("%d %s %s%s %s", number+1, order.ask.method.name,
			strings.TrimLeft(said.token, "0"), strings.TrimLeft(said.turn, "0"), strings.TrimLeft(said.acknowledged, "0"))))
		if w.servers[number].paused {
			w.clock.advance(order.limit)
			w.lessee.done(order, nil, lost())
			continue
		}
		terms, problem := w.servers[number].answer(order.ask)
		w.lessee.done(order, terms, problem)
	}
	return sent
}

// idle lets time pass.
func (w *leaseWorld) idle(by time.Duration) (sent []string) {
	w.Helper()
	for step := 50 * time.Millisecond; by > 0; by -= step {
		w.clock.advance(step)
		sent = append(sent, w.turn()...)
	}
	return sent
}

// run lets time pass, and takes an id in each step, which must not fail.
func (w *leaseWorld) run(by time.Duration) (sent []string) {
	w.Helper()
	for step := 50 * time.Millisecond; by > 0; by -= step {
		sent = append(sent, w.idle(step)...)
		w.take()
	}
	return sent
}

func (w *leaseWorld) take() {
	w.Helper()
	id, err := w.ids.next()
	if err != nil {
		w.Fatal(err)
	}
	w.issued = append(w.issued, id)
}

func (w *leaseWorld) fails(words string) {
	w.Helper()
	if id, err := w.ids.next(); err == nil || !strings.Contains(err.Error(), words) {
		w.Fatal(id, err)
	}
}

func (w *leaseWorld) sent(got []string, want ...string) {
	w.Helper()
	if !slices.Equal(got, want) {
		w.Fatalf("sent %q, not %q", got, want)
	}
}

// check: ids rise, and each is of a lease that was granted to this lessee.
func (w *leaseWorld) check() {
	for i, id := range w.issued {
		granted := false
		for _, server := range w.servers {
			for _, held := range server.leases {
				terms := held.terms
				granted = granted || int64(terms.machine) == id>>12&1023 && terms.fromTick <= tickOf(id) && tickOf(id) < terms.untilTick
			}
		}
		if !granted || i > 0 && id>>22<<12|id&4095 <= w.issued[i-1]>>22<<12|w.issued[i-1]&4095 {
			w.Fatalf("id %d, after %v", id, w.issued[max(i-1, 0):i])
		}
	}
}

func count(sent []string, part string) (number int) {
	for _, one := range sent {
		if strings.Contains(one, part) {
			number++
		}
	}
	return number
}

func repeated(said *failure, times int) []any {
	all := make([]any, times)
	for i := range all {
		all[i] = said
	}
	return all
}

// --- grants --------------------------------------------------------------------------------------

func TestFirstLease(t *testing.T) {
	w := newLeaseWorld(t, 2)
	order := w.lessee.due()
	if said := order.ask.lease; said.name != "checkout" || *said.aheadMs != 60_000 || said.rack != nil ||
		said.clockMs != leaseBegin.UnixMilli() || said.token != drawn(1) {
		t.Fatal(said)
	}
	terms, problem := w.servers[0].answer(order.ask)
	w.lessee.done(order, terms, problem)
	w.take()
	w.sent(w.turn())
}

func TestLostGrantIsRepeatedWithItsTokenAtTheSameServer(t *testing.T) {
	w := newLeaseWorld(t, 2)
	w.servers[0].after = []*failure{lost()}
	w.sent(w.idle(time.Second), "1 lease 1", "1 lease 1")
	if len(w.servers[0].leases) != 1 {
		t.Fatal("two leases for one token")
	}
	w.take()
}

func TestServerThatStaysSilentIsLeftWithAFreshToken(t *testing.T) {
	w := newLeaseWorld(t, 2)
	w.servers[0].say = []any{lost(), lost()}
	w.sent(w.idle(time.Second), "1 lease 1", "1 lease 1", "2 lease 2")
	w.take()
}

func TestServerThatDiesAfterGrantingIsLeftAtOnce(t *testing.T) {
	w := newLeaseWorld(t, 2)
	w.servers[0].after, w.servers[0].say = []*failure{lost()}, []any{nil, unreachable()}
	w.sent(w.idle(time.Second/2), "1 lease 1", "1 lease 1", "2 lease 2")
}

func TestOnlyServerKeepsTheToken(t *testing.T) {
	w := newLeaseWorld(t, 1)
	w.servers[0].after, w.servers[0].say = []*failure{lost()}, []any{nil, lost(), lost(), lost(), unreachable()}
	sent := w.idle(10 * time.Second)
	if count(sent, "1 lease 1") != count(sent, " lease ") || len(w.servers[0].leases) != 1 {
		t.Fatal(sent)
	}
}

func TestUnreachableServersAreAskedInTurnWithTheSameToken(t *testing.T) {
	w := newLeaseWorld(t, 2)
	w.servers[0].say, w.servers[1].say = repeated(unreachable(), 3), repeated(unreachable(), 2)
	w.sent(w.idle(3*time.Second), "1 lease 1", "2 lease 1", "1 lease 1", "2 lease 1", "1 lease 1", "2 lease 1")
	w.take()
}

func TestWaitsAsLongAsAServerThatIsNotReadySays(t *testing.T) {
	w := newLeaseWorld(t, 1)
	w.servers[0].say = []any{notReady()}
	w.sent(w.turn(), "1 lease 1")
	w.sent(w.idle(650 * time.Millisecond))
	w.sent(w.idle(100*time.Millisecond), "1 lease 1")
	w.take()
}

func TestServerWithoutLeasesAndAnOldServerAreLeft(t *testing.T) {
	w := newLeaseWorld(t, 3)
	w.servers[0].say, w.servers[1].say = []any{lacksMethod()}, []any{leaseRefused(leaseNone, "")}
	w.sent(w.turn(), "1 lease 1", "2 lease 1", "3 lease 2")
	w.take()
}

func TestUnusableTermsAreReportedAndGivenBackAndAnotherTokenIsUsed(t *testing.T) {
	w := newLeaseWorld(t, 2)
	terms := testTerms(17, func(terms *leaseTerms) { terms.baseBits = 1 })
	w.servers[0].say = []any{terms}
	w.sent(w.turn(), "1 lease 1", "1 releaseLease")
	w.fails("10.0.0.1:7609 granted a lease that cannot be used: fields that overlap")
	if told := w.servers[0].ended["lease-17"]; told != fmt.Sprint(" ", terms.fromTick-1) {
		t.Fatal(told)
	}
	w.sent(w.idle(time.Second), "2 lease 2")
}

func TestUnusedLeaseThatBeginsBeforeTheFirstTickIsReleasedWithMinusOne(t *testing.T) {
	for _, from := range []int64{0, -1, -5, math.MinInt64} {
		w := newLeaseWorld(t, 1)
		w.servers[0].say = []any{testTerms(17, func(terms *leaseTerms) { terms.fromTick, terms.baseBits = from, 1 })}
		w.turn()
		if told := w.servers[0].ended["lease-17"]; told != " -1" {
			t.Error(from, told)
		}
	}
}

func TestLeaseOfAnotherLayoutIsGivenBackAndAnotherOneRequested(t *testing.T) {
	w, a, b := leased(t)
	other := testTerms(99, func(terms *leaseTerms) { terms.epochMs++ })
	a.say, b.say = []any{leaseRefused(leaseRevoked, "")}, []any{other}
	w.run(4950 * time.Millisecond)
	w.sent(w.idle(50*time.Millisecond), "1 renewLease 2", "2 lease 3", "1 releaseLease")
	w.fails("last failure: 10.0.0.2:7609 granted a lease that cannot be used: its layout is not that of")
	if told := a.ended["lease-99"]; told != fmt.Sprint(" ", other.fromTick-1) {
		t.Fatal(told)
	}
	w.idle(3 * time.Second)
	w.take()
}

func TestReasonOfTheLastFailureIsInTheError(t *testing.T) {
	w := newLeaseWorld(t, 2)
	w.servers[0].say, w.servers[1].say = []any{unreachable()}, []any{notReady()}
	w.turn()
	w.fails("granted one yet; last failure: 10.0.0.2:7609 refused (NOT_READY): the registry")
}

// --- renewals ------------------------------------------------------------------------------------

func TestEachRenewalHasAFreshTurnAndShowsTheLast(t *testing.T) {
	w, _, _ := leased(t)
	sent := w.run(2 * time.Minute) // after 5 s, and then every 20 s
	w.sent(sent, "1 renewLease 2", "1 renewLease 3 2", "1 renewLease 4 3", "1 renewLease 5 4", "1 renewLease 6 5",
		"1 renewLease 7 6")
	if len(w.lost) > 0 {
		t.Fatal(w.lost)
	}
}

func TestLostRenewalAnswerIsRepeatedWithItsTurn(t *testing.T) {
	w, a, _ := leased(t)
	a.after = []*failure{lost(), lost()}
	w.sent(w.run(10*time.Second), "1 renewLease 2", "1 renewLease 2", "1 renewLease 2")
	w.sent(w.run(20*time.Second), "1 renewLease 3 2")
}

func TestLostOrRefusedRenewalIsRepeatedWithItsTurn(t *testing.T) {
	w, a, _ := leased(t)
	a.say = []any{lost(), unreachable(), notReady(), &failure{end: WasRefused, reason: BadRequest}}
	sent := w.run(12 * time.Second)
	if count(sent, "1 renewLease 2") != 5 || count(sent, "renewLease 3") != 0 {
		t.Fatal(sent)
	}
}

// widestWait returns the widest time between two attempts of a renewal, if a server gives an interval of this length, and
// then answers no more.
func widestWait(t *testing.T, aheadMs int32, given time.Duration) (widest time.Duration) {
	w := newLeaseWorld(t, 1)
	terms := testTerms(17, func(terms *leaseTerms) { terms.untilTick = terms.fromTick + given.Milliseconds() })
	w.lessee.aheadMs, w.servers[0].say = aheadMs, append([]any{terms}, repeated(lost(), 1000)...)
	w.turn()
	w.known = nil
	for last, end := time.Duration(0), w.clock.steady+given; w.clock.steady < end-time.Millisecond; {
		w.clock.advance(time.Millisecond)
		if len(w.turn()) > 0 {
			if last > 0 {
				widest = max(widest, w.clock.steady-last)
			}
			last = w.clock.steady
		}
	}
	w.take()
	return widest
}

func TestWaitsAfterFailuresAreAtMostATwelfthOfTheIntervalThatWasGiven(t *testing.T) {
	for _, one := range []struct {
		aheadMs        int32
		given, longest time.Duration
	}{
		{60_000, time.Minute, 2 * time.Second},
		{60_000, 6 * time.Second, 500 * time.Millisecond},
		{60_000, 3 * time.Second, 250 * time.Millisecond},
		{60_000, time.Second, 100 * time.Millisecond},
		{6_000, time.Minute, 500 * time.Millisecond},
		{2_000, time.Minute, 167 * time.Millisecond},
	} {
		if widest := widestWait(t, one.aheadMs, one.given); widest > one.longest+time.Millisecond || widest < one.longest/2 {
			t.Error(one, widest)
		}
	}
}

func TestAdviceOfAServerIsFollowedForAtMostTenSeconds(t *testing.T) {
	w, a, _ := leased(t)
	w.run(24950 * time.Millisecond) // 60 s are left
	a.say = []any{advises(time.Hour)}
	w.sent(w.run(50*time.Millisecond), "1 renewLease 3 2")
	w.sent(w.run(9950 * time.Millisecond))
	w.sent(w.run(50*time.Millisecond), "1 renewLease 3 2")
}

func TestAdviceOfAServerIsFollowedForAtMostHalfOfWhatIsLeft(t *testing.T) {
	w, a, _ := leased(t)
	w.known, a.say = nil, []any{advises(time.Hour), advises(time.Hour)}
	w.run(4950 * time.Millisecond)
	w.sent(w.run(50*time.Millisecond), "1 renewLease 2") // 10 s are left
	w.sent(w.run(4950 * time.Millisecond))
	w.sent(w.run(50*time.Millisecond), "1 renewLease 2")
	w.sent(w.run(2450 * time.Millisecond))
	w.sent(w.run(50*time.Millisecond), "1 renewLease 2")
}

func TestRenewalIsSentBeforeAGrantAndBothBeforeReleases(t *testing.T) {
	w, a, _ := leased(t)
	w.lessee.giveBack(testTerms(99, nil), a.address)
	w.clock.advance(11 * time.Second)
	a.say = []any{lost()}
	w.sent(w.turn(), "1 renewLease 2", "2 lease 3", "1 releaseLease", "1 releaseLease 2")
}

func TestDeadServerIsReplacedWhenAThirdIsLeft(t *testing.T) {
	w, a, b := leased(t)
	a.say = repeated(unreachable(), 1000)
	if sent := w.run(9950 * time.Millisecond); count(sent, "1 renewLease 2") != len(sent) {
		t.Fatal(sent)
	}
	if sent := w.run(time.Second); count(sent, "2 lease 3") != 1 {
		t.Fatal(sent)
	}
	w.run(time.Minute)
	if w.ids.current().server != b.address || len(w.lost) > 0 {
		t.Fatal(w.lost)
	}
}

func TestPausedServerOfAShortLeaseIsReplacedInTime(t *testing.T) {
	for _, busy := range []int{0, 1} { // answers of the other server that it is not ready
		w := newLeaseWorld(t, 2)
		w.lessee.aheadMs = 3_000
		w.turn()
		w.run(5 * time.Second)
		w.servers[0].paused, w.servers[1].say = true, repeated(notReady(), busy)
		w.run(10 * time.Second)
		if w.check(); len(w.lost) != 0 || w.ids.current().server != w.servers[1].address {
			t.Fatal(busy, w.lost)
		}
	}
}

func TestReplacedLeaseIsReleasedWithTheLastTurnAndTheHighestTick(t *testing.T) {
	w, a, _ := leased(t)
	lease := w.ids.current().lease
	a.renew = notReady
	w.run(9950 * time.Millisecond)
	last := w.issued[len(w.issued)-1]
	w.run(time.Second)
	if told := a.ended[lease]; told != fmt.Sprint(drawn(2), " ", tickOf(last)) {
		t.Fatal(told)
	}
}

func TestReleaseIsRepeatedUntilTheLeaseHasEnded(t *testing.T) {
	w, a, _ := leased(t)
	a.say = repeated(unreachable(), 1000)
	if sent := w.run(30 * time.Second); count(sent, "releaseLease") < 3 {
		t.Fatal(sent)
	}
	if sent := w.run(30 * time.Second); count(sent, "releaseLease") != 0 {
		t.Fatal(sent)
	}
}

func TestUnusedLeaseIsReleasedUntilItsEndOrForAhead(t *testing.T) {
	for i, one := range []struct {
		change func(*leaseTerms)
		end    time.Duration
	}{
		{func(*leaseTerms) {}, 15 * time.Second},
		{func(terms *leaseTerms) { terms.untilTick += 600_000 }, time.Minute}, // more than was asked for
		{func(terms *leaseTerms) { terms.untilTick = 0 }, time.Minute},        // the end is unknown
		{func(terms *leaseTerms) { terms.tickMs, terms.untilTick = -1<<31, 1<<63-1 }, time.Minute},
	} {
		w := newLeaseWorld(t, 1)
		unusable := testTerms(17, func(terms *leaseTerms) { terms.baseBits = 1 })
		one.change(unusable)
		w.servers[0].say = append([]any{unusable}, repeated(unreachable(), 1000)...)
		w.turn()
		w.known = nil
		if sent := w.idle(one.end - 3*time.Second); count(sent, "releaseLease") != len(sent) {
			t.Error(i, sent)
		}
		if sent := w.idle(3*time.Second - 50*time.Millisecond); len(sent) == 0 {
			t.Error(i, "not released until its end")
		}
		if sent := w.idle(time.Minute); len(sent) > 0 {
			t.Error(i, sent)
		}
	}
}

func TestAllServersDownForLongerThanARenewal(t *testing.T) {
	w, a, b := leased(t)
	w.run(6 * time.Second) // the interval has 60 s
	a.say, b.say = repeated(unreachable(), 1000), repeated(unreachable(), 1000)
	w.run(55 * time.Second)
	a.say, b.say = nil, nil
	w.run(time.Minute)
	if len(w.lost) > 0 {
		t.Fatal(w.lost)
	}
}

func TestRenewalThatSucceedsCancelsAGrantThatNoServerHasReceived(t *testing.T) {
	w, a, _ := leased(t)
	w.known, a.say = nil, repeated(unreachable(), 1000)
	w.run(11 * time.Second)
	if w.lessee.grant == nil {
		t.Fatal("no other lease is requested")
	}
	a.say = nil
	w.run(3 * time.Second)
	if w.lessee.grant != nil {
		t.Fatal("another lease is requested")
	}
}

func TestIntervalThatEndsIsReportedOnceAndTheNextLeaseFollows(t *testing.T) {
	w, a, b := leased(t)
	w.known, a.say = nil, repeated(unreachable(), 1000)
	w.run(14_950 * time.Millisecond)
	w.idle(10 * time.Second)
	w.fails("machine id 17 ended, and no server extended it; last failure: 10.0.0.1:7609 unreachable: refused")
	if len(w.lost) != 1 || !strings.Contains(w.lost[0], "machine id 17 ended at 2024-01-12 13:46:55 UTC") {
		t.Fatal(w.lost)
	}
	w.known = []*testServer{b}
	w.idle(3 * time.Second)
	w.take()
}

func TestRevokedLeaseStopsAtOnceAndTheNextHasAFreshToken(t *testing.T) {
	w, a, _ := leased(t)
	a.say = []any{leaseRefused(leaseRevoked, "")}
	w.run(4950 * time.Millisecond)
	w.sent(w.idle(50*time.Millisecond), "1 renewLease 2", "2 lease 3")
	if len(w.lost) != 1 || w.lost[0] != "the lease of machine id 17 was revoked: as the test says" {
		t.Fatal(w.lost)
	}
	w.run(time.Minute)
	if len(a.ended) > 0 {
		t.Fatal(a.ended) // there is nothing to release
	}
}

func TestNoIDBetweenARevocationAndTheNextLease(t *testing.T) {
	w, a, _ := leased(t)
	w.known, a.say = nil, []any{leaseRefused(leaseRevoked, "")}
	w.run(4950 * time.Millisecond)
	w.idle(50 * time.Millisecond)
	w.fails("was revoked")
}

func TestTurnThatAnotherProcessHasOvertakenIsARevocation(t *testing.T) {
	w, a, _ := leased(t)
	a.say = []any{leaseRefused(leaseOutdated, "")}
	if w.idle(5 * time.Second); len(w.lost) != 1 {
		t.Fatal(w.lost)
	}
}

// The copy renews first; then the turn that this process shows is not the last one.
func TestCopyOfTheProcessIsFound(t *testing.T) {
	w, a, _ := leased(t)
	a.leases[drawn(1)].turn = strings.Repeat("f", 32)
	if w.idle(5 * time.Second); len(w.lost) != 1 {
		t.Fatal(w.lost)
	}
}

func TestUnknownLeaseIsUsedAndReplacedAtOnce(t *testing.T) {
	w, a, _ := leased(t)
	a.say = []any{leaseRefused(leaseUnknown, "")}
	w.sent(w.run(5*time.Second), "1 renewLease 2", "2 lease 3")
	if w.run(20 * time.Second); len(w.lost) > 0 || len(a.ended) > 0 {
		t.Fatal(w.lost, a.ended)
	}
}

func TestUnknownLeaseIsUsedToItsEndIfNoServerGrantsAnother(t *testing.T) {
	w, a, _ := leased(t)
	w.known, a.say = nil, []any{leaseRefused(leaseUnknown, "")}
	w.sent(w.run(14_950*time.Millisecond), "1 renewLease 2")
	w.idle(50 * time.Millisecond)
	w.fails("ended")
}

func TestLeaseThatItsServerExtendsNoLongerIsUsedAndReplacedAtOnce(t *testing.T) {
	for _, said := range []*failure{leaseRefused(leaseNone, ""), leaseRefused(leaseOther, ""), lacksMethod()} {
		w, a, b := leased(t)
		w.known, a.say = nil, []any{said}
		w.sent(w.run(9*time.Second), "1 renewLease 2")
		w.known = []*testServer{b}
		if sent := w.run(2 * time.Second); !slices.Equal(sent, []string{"2 lease 3", "1 releaseLease"}) || len(w.lost) > 0 {
			t.Fatal(said, sent, w.lost)
		}
	}
}

func TestEndingLeaseIsRenewedUpToItsBoundAndReplacedWhenAThirdIsLeft(t *testing.T) {
	w, a, b := leased(t)
	a.leases[drawn(1)].terms.ending = true
	a.bound = w.clock.tick() + 300_000
	sent := w.run(290 * time.Second)
	if renewals := strings.Count(strings.Join(sent, "\n"), "renewLease"); renewals < 13 || len(b.leases) != 1 {
		t.Fatal(sent)
	}
	for _, held := range b.leases {
		if before := a.bound - held.terms.fromTick; before < 18_900 || before > 21_100 {
			t.Fatal(before)
		}
	}
}

// No server can grant a lease: the ending one lasts to its bound.
func TestEndingLeaseWithoutASuccessorIsUsedToItsBound(t *testing.T) {
	w, a, _ := leased(t)
	a.leases[drawn(1)].terms.ending = true
	a.bound, w.known = w.clock.tick()+300_000, nil
	w.run(299_900 * time.Millisecond)
	if len(w.lost) > 0 {
		t.Fatal(w.lost)
	}
}

// A slow registry, or a probation.
func TestServerThatIsClaimingKeepsTheRequestAndItsToken(t *testing.T) {
	w := newLeaseWorld(t, 2)
	w.servers[0].say = repeated(claiming(), 30)
	for _, one := range w.idle(time.Minute) {
		if strings.Contains(one, " lease ") && one != "1 lease 1" {
			t.Fatal(one)
		}
	}
	if len(w.servers[0].leases) != 1 || len(w.servers[1].leases) != 0 {
		t.Fatal(w.servers[0].leases, w.servers[1].leases)
	}
}

func TestAnotherServerThatIsNamedIsAsked(t *testing.T) {
	w, a, b := leased(t)
	b.leases, a.say = a.leases, []any{leaseRefused(leaseAnotherServers, b.address)}
	w.sent(w.run(5*time.Second), "1 renewLease 2", "2 renewLease 2")
}

func TestServersThatNameEachOtherAreFollowedTwice(t *testing.T) {
	w, a, b := leased(t)
	a.say = repeated(leaseRefused(leaseAnotherServers, b.address), 1000)
	b.say = repeated(leaseRefused(leaseAnotherServers, a.address), 1000)
	w.sent(w.run(5*time.Second), "1 renewLease 2", "2 renewLease 2", "1 renewLease 2")
	if sent := w.run(4 * time.Second); count(sent, "1 renewLease 2") != len(sent) || len(sent) < 2 || len(sent) > 6 {
		t.Fatal(sent)
	}
}

func TestAddressThatNeitherTheListNorTheGrantHasIsNotFollowed(t *testing.T) {
	for _, address := range []string{"10.9.9.9:7609", "nowhere", ""} {
		w, a, _ := leased(t)
		a.say = []any{leaseRefused(leaseAnotherServers, address)}
		w.sent(w.run(6*time.Second), "1 renewLease 2", "1 renewLease 2")
	}
}

// balanced returns a world in which the first server grants a lease of the second one, which no list has.
func balanced(t *testing.T) (w *leaseWorld, a, b *testServer) {
	w = newLeaseWorld(t, 2)
	a, b = w.servers[0], w.servers[1]
	w.known, w.unlisted = []*testServer{a}, b.address
	terms := testTerms(17, func(terms *leaseTerms) { terms.server = b.address })
	b.leases[drawn(1)], a.say = &testLease{*terms, ""}, []any{terms}
	w.turn()
	return w, a, b
}

func TestServerThatNoListHasIsAskedOnlyWhereItIsNamedAgain(t *testing.T) {
	w, a, b := balanced(t)
	a.say = []any{leaseRefused(leaseAnotherServers, b.address)}
	w.sent(w.run(5*time.Second), "1 renewLease 2", "2 renewLease 2")
	a.say = []any{leaseRefused(leaseAnotherServers, b.address)}
	w.sent(w.run(20*time.Second), "1 renewLease 3 2", "2 renewLease 3 2")
	w.unlisted = ""
	w.sent(w.run(20*time.Second), "2 renewLease 4 3")
}

func TestUnreachableServerThatWasNamedIsFollowedByTheOneThatGranted(t *testing.T) {
	w, a, b := balanced(t)
	a.say, b.say = []any{leaseRefused(leaseAnotherServers, b.address), lost()}, []any{unreachable()}
	w.sent(w.run(5250*time.Millisecond), "1 renewLease 2", "2 renewLease 2", "1 renewLease 2")
}

func TestReleaseFollowsOnlyKnownAddresses(t *testing.T) {
	w, a, b := balanced(t)
	a.say = []any{leaseRefused(leaseAnotherServers, "10.9.9.9:7609"), leaseRefused(leaseAnotherServers, b.address)}
	w.lessee.stop()
	w.sent(w.idle(time.Second), "1 releaseLease", "1 releaseLease", "2 releaseLease")
}

func TestTermsOfAnotherLeaseDoNotExtendThisOne(t *testing.T) {
	w, a, _ := leased(t)
	for _, change := range []func(*leaseTerms){
		func(terms *leaseTerms) { terms.machine, terms.baseBits = 18, 18<<12 },
		func(terms *leaseTerms) { terms.lease = "x" },
		func(terms *leaseTerms) { terms.untilTick-- },
	} {
		a.say = append(a.say, testTerms(17, change))
	}
	w.sent(w.run(7*time.Second), "1 renewLease 2", "1 renewLease 2", "1 renewLease 2", "1 renewLease 2")
}

// --- the end -------------------------------------------------------------------------------------

func TestStopClosesBeforeItReadsTheHighestTick(t *testing.T) {
	w, a, _ := leased(t)
	lease := w.ids.current().lease
	w.run(7 * time.Second)
	w.lessee.stop()
	w.fails("closed")
	w.sent(w.turn(), "1 releaseLease 2")
	if told := a.ended[lease]; told != fmt.Sprint(drawn(2), " ", tickOf(w.issued[len(w.issued)-1])) || !w.lessee.stopped() {
		t.Fatal(told)
	}
	w.sent(w.idle(time.Minute))
}

func TestStopDuringARenewalNamesTheTurnThatHasNoAnswer(t *testing.T) {
	w, a, _ := leased(t)
	first := w.ids.current()
	w.clock.advance(5 * time.Second)
	order := w.lessee.due()
	w.lessee.stop()
	terms, problem := a.answer(order.ask)
	w.lessee.done(order, terms, problem)
	w.turn()
	if told := a.ended[first.lease]; told != fmt.Sprint(drawn(2), " ", first.fromTick-1) {
		t.Fatal(told)
	}
}

func TestLeaseThatIsGrantedAfterStopIsReleasedUnused(t *testing.T) {
	w := newLeaseWorld(t, 2)
	order := w.lessee.due()
	w.lessee.stop()
	terms, problem := w.servers[0].answer(order.ask)
	w.lessee.done(order, terms, problem)
	w.turn()
	if told := w.servers[0].ended[terms.lease]; told != fmt.Sprint(" ", terms.fromTick-1) {
		t.Fatal(told)
	}
}
