package firn

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

const (
	lesseeTurnMax   = time.Second // between two readings of the clocks
	leaseRenewLeast = 100 * time.Millisecond
	grantPause      = 2 * time.Second // between a lease and the request for another
	leaseRetryFirst = 200 * time.Millisecond
	leaseRetryMax   = 2 * time.Second
	leaseRetryPart  = 12 // of the interval: the longest wait after a failure
	retryMaxLeast   = 100 * time.Millisecond
	leaseAdviceMax  = 10 * time.Second // of a server: a larger one could make the lease end
	leaseHopsMax    = 2
	grantRepeats    = 1 // at the server that may have granted the lease, before the client fails over
	releasesMax     = 4
)

// leaseRequest is a request that is repeated until it is answered.
//
//   - lease: with the same token at the server that may have granted it (holder). Another server gets a fresh token:
//     no id was issued under the first lease, which expires.
//   - renewLease: with the same turn.
//   - releaseLease: until the lease has ended by itself.
type leaseRequest struct {
	method     *method
	sendAt     time.Duration // steady clock
	nextWait   time.Duration
	wallAtZero time.Time // when it was sent; the earliest time, since any of the repeated requests may have been answered
	sentInJump bool      // the last time

	// lease
	token   string
	tried   []string // servers that are used again only after all others
	holder  string
	repeats int
	advice  time.Duration

	// renewLease and releaseLease
	turn   string // the last one sent
	server string
	named  string // the server that the grant named
	hops   int    // to servers that refusals named

	// releaseLease
	lease    string
	usedTick *int64    // nil: unknown
	useless  time.Time // id clock
}

// heldLease is the lease in force.
type heldLease struct {
	terms        *leaseTerms   // of the last answer
	via          string        // address of the server that granted it
	named        string        // address that the grant contained
	acknowledged string        // turn of the last answer
	sent         string        // the last turn sent, unless the server extends no leases
	end          time.Time     // id clock
	third        time.Duration // of the interval
	replaceAt    time.Time     // id clock: another lease is requested
	renewAt      time.Duration // steady clock, as the next one
	answeredAt   time.Duration
	renewable    bool
	unknown      bool // its server has no such lease
	expired      bool // and reported
}

// leaseOrder is a request to send now, to the server at this address.
type leaseOrder struct {
	request *leaseRequest
	address string
	ask     *ask
	limit   time.Duration // one request is sent at a time, and a more urgent one must be sent before the lease ends
}

// lessee decides which request is sent when, and what its outcome means. It does no input and output, and has no
// goroutine: one goroutine calls due, sends what that returns, and passes the outcome to done.
//
//  1. A grant is repeated with its token until a server answers: a lost answer costs nothing.
//  2. A renewal has a fresh turn, which is repeated until it is answered, and shows the turn that was answered last. A
//     copy of this process cannot show both.
//  3. The lease is used until its end, whatever servers answer, with one exception: when the server has revoked it, the
//     ids are closed at once.
//  4. A lease that is ending is renewed, too: its server extends it up to a final bound. When a third of the interval
//     is left, or at once if its server does not extend it, another lease is requested, from another server if there
//     is one. It replaces the first, and continues in a later tick.
//  5. A lease that was replaced is released: first its ids are closed, then its highest used tick is read. A lease
//     that cannot be used is released at once.
//  6. Of several requests that are due, a renewal is sent first, then a grant, then releases.
type lessee struct {
	name    string
	aheadMs int32
	rack    *int32
	ids     *leasedIDs
	clock   *leaseClock
	pick    func(tried []string) string // a usable server that is not among these; empty: there is none
	listed  func(address string) bool   // whether the list of servers has the address
	onLost  func(LeaseLoss)
	draw    func() string // 128 random bits
	foreign bool          // the ids are made elsewhere: no tick is known to be unused

	held           *heldLease
	grant          *leaseRequest
	renewal        *leaseRequest
	releases       []*leaseRequest
	lastServers    []string      // addresses of the server that granted the last lease
	interval       time.Duration // that a server gave last, at most `ahead`; 0: none yet
	grantNotBefore time.Duration
	stopping       bool
	nextAt         time.Duration // steady clock: when due is to be called, at the latest
}

// stopped returns whether nothing is left to be sent after stop.
func (l *lessee) stopped() bool { return l.stopping && len(l.releases) == 0 }

// due returns the request to send now, or nil. Its outcome must be passed to done before the next call.
func (l *lessee) due() *leaseOrder {
	idTime, jumped := l.ids.readClocks()
	now := l.clock.steady()
	l.nextAt = now + lesseeTurnMax
	l.hurry(jumped, now)
	l.plan(now, idTime)
	l.releases = slices.DeleteFunc(l.releases, func(one *leaseRequest) bool { return !idTime.Before(one.useless) })
	for _, request := range append([]*leaseRequest{l.renewal, l.grant}, l.releases...) { // the most urgent one first
		if request == nil {
			continue
		}
		if request.sendAt <= now {
			if order := l.order(request, now); order != nil {
				request.sentInJump = jumped
				return order
			}
		}
		l.nextAt = min(l.nextAt, request.sendAt)
	}
	return nil
}

// done takes the outcome of a request: terms, a problem, or neither for a lease that was released.
func (l *lessee) done(order *leaseOrder, terms *leaseTerms, problem *failure) {
	if problem != nil {
		l.ids.noteTrouble(order.address + " " + problem.String())
	}
	switch request := order.request; {
	case request == l.grant:
		l.granted(request, order.address, terms, problem)
	case request == l.renewal:
		l.renewed(request, terms, problem)
	case request.method == methodReleaseLease:
		l.released(request, problem)
	case request.method == methodLease && terms != nil: // the generator was closed meanwhile
		l.giveBack(terms, order.address)
	}
}

// stop closes the ids for good, and requests the end of the lease.
func (l *lessee) stop() {
	if l.stopping {
		return
	}
	l.stopping = true
	used := l.ids.close(Closed, "the generator was closed")
	l.releaseHeld(used)
	l.held, l.grant, l.renewal = nil, nil, nil
}

// --- what is to be sent --------------------------------------------------------------------------

func (l *lessee) plan(now time.Duration, idTime time.Time) {
	held := l.held
	if held != nil {
		left := held.end.Sub(idTime)
		if left <= 0 && !held.expired {
			held.expired = true
			l.lose(Expired, held, fmt.Sprintf("the lease of machine id %d ended at %s, and no server extended it",
				held.terms.machine, utcText(held.end)))
		}
		if held.renewable && l.renewal == nil && now >= held.renewAt {
			l.renewal = &leaseRequest{method: methodRenewLease, turn: l.draw(), sendAt: now, server: l.home(held),
				named: held.named}
		}
		if held.renewable && l.renewal == nil {
			l.nextAt = min(l.nextAt, held.renewAt)
		}
		if left > 0 {
			l.nextAt = min(l.nextAt, now+left)
		}
	}
	wants := !l.stopping && (held == nil || !idTime.Before(held.replaceAt))
	if wants && l.grant == nil && now >= l.grantNotBefore {
		l.grant = &leaseRequest{method: methodLease, token: l.draw(), sendAt: now}
		l.grant.tried = slices.Clone(l.lastServers)
	}
}

// hurry makes a request due, after a jump of the wall clock, whose answer confirms it: a renewal, or a request that was
// sent before the jump. If that fails, too, it has the ordinary wait.
func (l *lessee) hurry(jumped bool, now time.Duration) {
	if l.held != nil && jumped {
		l.held.renewAt = min(l.held.renewAt, l.held.answeredAt+leaseRenewLeast)
	}
	for _, request := range []*leaseRequest{l.renewal, l.grant} {
		if request == nil {
			continue
		}
		request.sentInJump = request.sentInJump && jumped
		if jumped && !request.sentInJump {
			request.sendAt = min(request.sendAt, now)
		}
	}
}

func (l *lessee) order(request *leaseRequest, now time.Duration) *leaseOrder {
	address, said, limit := request.server, leaseAsk{turn: request.turn}, leaseAttempt
	switch request.method {
	case methodLease:
		if address = l.serverFor(request, now); address == "" {
			return nil
		}
		said.token, said.name, said.rack = request.token, l.name, l.rack
	case methodRenewLease:
		l.held.sent = request.turn
		limit = max(l.held.replaceAt.Sub(l.ids.idTime()), l.longestWait())
		said.lease, said.acknowledged = l.held.terms.lease, l.held.acknowledged
	default:
		if l.held != nil {
			limit = max(l.held.renewAt-now, l.longestWait())
		}
		said.lease, said.usedTick = request.lease, request.usedTick
	}
	wall := l.clock.wall().Round(0) // before the steady clock: a pause between must not prolong the time since
	if zero := wall.Add(-l.clock.steady()); request.wallAtZero.IsZero() || zero.Before(request.wallAtZero) {
		request.wallAtZero = zero
	}
	said.clockMs, said.aheadMs = wall.UnixMilli(), &l.aheadMs
	return &leaseOrder{request, address, &ask{method: request.method, lease: said}, min(limit, leaseAttempt)}
}

// serverFor returns the server to ask for a lease. When all were tried, it begins again after a wait.
func (l *lessee) serverFor(grant *leaseRequest, now time.Duration) string {
	if grant.holder != "" && grant.repeats <= grantRepeats {
		return grant.holder
	}
	address := l.pick(grant.tried)
	if address == "" {
		grant.sendAt = now + l.delay(grant, grant.advice)
		grant.tried, grant.advice = nil, 0
	} else if grant.holder != "" && address != grant.holder {
		grant.token, grant.holder = l.draw(), ""
	}
	return address
}

// home returns the address for requests about the lease.
func (l *lessee) home(held *heldLease) string {
	if l.listed(held.terms.server) {
		return held.terms.server
	}
	return held.via
}

// longestWait returns the longest wait after a failure: a twelfth of the interval, but at least 100 ms, and at most 2 s.
func (l *lessee) longestWait() time.Duration {
	interval := l.interval
	if interval == 0 {
		interval = l.ahead()
	}
	return min(max(interval/leaseRetryPart, retryMaxLeast), leaseRetryMax)
}

func (l *lessee) ahead() time.Duration { return time.Duration(l.aheadMs) * time.Millisecond }

// delay returns the wait after a failure, which doubles with each one. Up to half of it is random. The server's advice
// prolongs it, but not beyond half of the remaining interval.
func (l *lessee) delay(request *leaseRequest, advice time.Duration) time.Duration {
	wait := min(max(request.nextWait, leaseRetryFirst), l.longestWait())
	request.nextWait = 2 * wait
	end := request.useless
	if l.held != nil && request.method != methodReleaseLease {
		end = l.held.end
	}
	advice = min(advice, leaseAdviceMax)
	if left := end.Sub(l.ids.idTime()); left > 0 {
		advice = min(advice, left/2)
	}
	return max(wait/2+time.Duration(rand.Int64N(int64(wait/2))), advice)
}

// --- what was answered ---------------------------------------------------------------------------

func (l *lessee) granted(grant *leaseRequest, address string, terms *leaseTerms, problem *failure) {
	now := l.clock.steady()
	if terms != nil {
		used, fault := int64(0), "it is held already"
		if !l.holds(terms) {
			used, fault = l.ids.adopt(terms)
		}
		if fault == "" {
			l.ids.confirm(grant.wallAtZero)
			l.hold(terms, address, used, now)
			return
		}
		l.ids.noteTrouble(address + " granted a lease that cannot be used: " + fault)
		l.giveBack(terms, address)
		grant.token, grant.holder = l.draw(), "" // this token would get the same lease
		grant.tried = append(grant.tried, address)
		grant.sendAt = now + l.delay(grant, 0)
		return
	}
	grant.advice = max(grant.advice, problem.retryAfter)
	switch {
	case problem.claiming():
		grant.holder, grant.repeats = address, 0
		grant.sendAt = now + l.delay(grant, problem.retryAfter)
		return
	case problem.mayBeDone():
		if grant.holder != address {
			grant.holder, grant.repeats = address, 0
		}
		if grant.repeats++; grant.repeats <= grantRepeats {
			grant.sendAt = now + l.delay(grant, problem.retryAfter)
			return
		}
	case problem.leaseFault != 0: // such as: a copy of this process has renewed the lease
		grant.token, grant.holder = l.draw(), ""
	default:
		grant.repeats = grantRepeats + 1
	}
	grant.tried = append(grant.tried, address)
	grant.sendAt = now
}

// mayBeDone returns whether the server may have granted the lease all the same, or may still do so.
func (f *failure) mayBeDone() bool {
	lost := f.end == Timeout || f.end == ConnClosed || f.end == Broken
	return lost || (f.end == WasRefused && f.reason == NotReady)
}

// claiming returns whether the server is claiming a machine id for the request, which is to be repeated there.
func (f *failure) claiming() bool {
	return f.end == WasRefused && f.reason == NotReady && !f.anotherMayHelp
}

func (l *lessee) holds(terms *leaseTerms) bool {
	return l.held != nil && l.held.terms.lease == terms.lease
}

// hold replaces the lease before, whose ids are closed.
func (l *lessee) hold(terms *leaseTerms, via string, used int64, now time.Duration) {
	l.releaseHeld(used)
	l.renewal, l.grant = nil, nil
	l.held = &heldLease{via: via, named: terms.server}
	l.lastServers, l.grantNotBefore = []string{via, terms.server}, now+grantPause
	l.schedule(l.held, terms, now)
}

// schedule sets the times of the lease after an answer.
func (l *lessee) schedule(held *heldLease, terms *leaseTerms, now time.Duration) {
	held.terms, held.end = terms, terms.start(terms.untilTick)
	left := max(held.end.Sub(l.ids.idTime()), 0)
	if left > 0 {
		l.interval = min(left, l.ahead())
	}
	// A lease that is ending is finally not extended any further.
	if third := left / 3; !terms.ending || third > held.third {
		held.third = third
	}
	held.replaceAt = held.end.Add(-held.third)
	held.answeredAt = now
	held.renewAt = now + max(min(time.Duration(terms.renewInMs)*time.Millisecond, left/3), leaseRenewLeast)
	held.renewable = true
	held.expired = held.expired && left == 0
}

func (l *lessee) renewed(renewal *leaseRequest, terms *leaseTerms, problem *failure) {
	held, now := l.held, l.clock.steady()
	if terms != nil {
		fault := terms.faultOfRenewal(held.terms)
		if fault == "" {
			l.ids.extend(terms.untilTick)
			l.ids.confirm(renewal.wallAtZero)
			held.acknowledged, l.renewal = renewal.turn, nil
			l.schedule(held, terms, now)
			if l.grant != nil && l.grant.holder == "" && !terms.ending {
				l.grant = nil // no server can have granted it
			}
			return
		}
		l.ids.noteTrouble(renewal.server + ": " + fault)
		problem = &failure{end: Broken}
	}
	switch fault := problem.leaseFault; {
	case fault == leaseRevoked || fault == leaseOutdated: // a later turn than this one was not this process's
		why := fmt.Sprintf("the lease of machine id %d was revoked: %s", held.terms.machine, problem.detail)
		l.ids.close(NoLease, why)
		l.held, l.renewal = nil, nil
		l.lose(Revoked, held, why)
	case problem.lacksMethod || fault == leaseUnknown || fault == leaseNone || fault == leaseOther:
		held.renewable, held.unknown, held.replaceAt, l.renewal = false, fault == leaseUnknown, time.Time{}, nil
		held.sent = held.acknowledged // the server has not accepted that of this renewal
	case !l.follows(renewal, problem):
		if problem.unsent() {
			renewal.server = l.home(held) // the server that was named is unreachable from here
		}
		renewal.sendAt = now + l.delay(renewal, problem.retryAfter)
	}
}

// follows returns whether the request is to be sent at once to another server, which the refusal names. The id of a
// lease is a secret: only servers in the list, and the one that the grant named, receive it.
func (l *lessee) follows(request *leaseRequest, problem *failure) bool {
	address := problem.leaseServer
	known := address == request.named || l.listed(address)
	if problem.leaseFault != leaseAnotherServers || !known || request.hops == leaseHopsMax {
		return false
	}
	request.server = address
	request.hops++
	return true
}

func (l *lessee) released(release *leaseRequest, problem *failure) {
	again := problem != nil && !problem.lacksMethod && (problem.end != WasRefused || problem.reason == NotReady ||
		problem.leaseFault == leaseAnotherServers)
	if !again {
		l.releases = slices.DeleteFunc(l.releases, func(one *leaseRequest) bool { return one == release })
		return
	}
	if !l.follows(release, problem) {
		release.sendAt = l.clock.steady() + l.delay(release, problem.retryAfter)
	}
}

// releaseHeld releases the lease in force, whose ids are closed. A server that does not know the lease gets no request.
func (l *lessee) releaseHeld(used int64) {
	switch held := l.held; {
	case held == nil || held.unknown:
	case l.foreign:
		l.release(held, nil)
	default:
		l.release(held, &used)
	}
}

// giveBack releases a lease under which no id was issued. Its terms may be wrong: an end that has passed, or is more than
// `ahead` away, is ignored.
func (l *lessee) giveBack(terms *leaseTerms, via string) {
	if terms.lease == "" || l.holds(terms) {
		return
	}
	unused, now := max(terms.fromTick, 0)-1, l.ids.idTime()
	end, latest := terms.start(terms.untilTick), now.Add(l.ahead())
	if !end.After(now) || end.After(latest) {
		end = latest
	}
	l.release(&heldLease{terms: terms, via: via, named: terms.server, end: end}, &unused)
}

func (l *lessee) release(held *heldLease, used *int64) {
	if len(l.releases) == releasesMax {
		l.releases = l.releases[1:]
	}
	l.releases = append(l.releases, &leaseRequest{method: methodReleaseLease, lease: held.terms.lease, turn: held.sent,
		server: l.home(held), named: held.named, usedTick: used, useless: held.end, sendAt: l.clock.steady()})
}

func (l *lessee) lose(kind LossKind, held *heldLease, why string) {
	if l.onLost != nil {
		l.onLost(LeaseLoss{kind, int(held.terms.machine), why})
	}
}

func itoa(number int32) string { return strconv.Itoa(int(number)) }
