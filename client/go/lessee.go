package firn

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"time"
)

const (
	lesseeTurnMax   = time.Second // between two looks at the clocks
	leaseRenewLeast = 100 * time.Millisecond
	grantPause      = 2 * time.Second // between a lease and the request for another
	leaseRetryFirst = 200 * time.Millisecond
	leaseRetryMax   = 2 * time.Second
	grantRepeats    = 1 // at the server that may have granted the lease, before another one is asked
	releasesMax     = 4
)

// leaseRequest is a request that is repeated until it is answered.
//
//   - lease: with the same token at the server that may have granted it (holder). When another server is asked, the
//     token is a fresh one: no id was issued under the first, which expires.
//   - renewLease: with the same turn.
//   - releaseLease: until the lease has ended by itself.
type leaseRequest struct {
	method     *method
	sendAt     time.Duration // steady clock
	nextWait   time.Duration
	redirected bool

	// lease
	token   string
	tried   []string // servers that are asked again only after all others
	holder  string
	repeats int
	advice  time.Duration

	turn string // renewLease and releaseLease: the last one sent

	// releaseLease
	lease, server string
	usedTick      int64
	useless       time.Time // id clock
}

// backOff returns the wait after a failure: it doubles with each one. Up to half of it is random.
func (r *leaseRequest) backOff() time.Duration {
	wait := max(r.nextWait, leaseRetryFirst)
	r.nextWait = min(2*wait, leaseRetryMax)
	return wait/2 + time.Duration(rand.Int64N(int64(wait/2)))
}

// heldLease is the lease in force.
type heldLease struct {
	terms        *leaseTerms
	server       string
	acknowledged string        // turn of the last answer
	end          time.Time     // id clock
	replaceAt    time.Time     // id clock: another lease is requested
	renewAt      time.Duration // steady clock
	renewable    bool
	unknown      bool // its server has no such lease
	expired      bool // and reported
}

// leaseOrder is a request to send now, to the server at this address.
type leaseOrder struct {
	request *leaseRequest
	address string
	ask     *ask
}

// lessee decides which request is sent when, and what its outcome means. It does no input and output, and has no
// goroutine: one goroutine calls due, sends what that returns, and passes the outcome to done.
//
//  1. A grant is repeated with its token until a server answers: a lost answer costs nothing.
//  2. A renewal has a fresh turn, which is repeated until it is answered, and shows the turn that was answered last. A
//     copy of this process cannot show both.
//  3. The lease is used until its end, whatever servers answer, with one exception: when the server has revoked it, the
//     ids are closed at once.
//  4. When a third of the interval is left, another lease is requested, from another server if there is one. It
//     replaces the first, and continues in a later tick.
//  5. A lease that was replaced is released: first its ids are closed, then its highest used tick is read.
type lessee struct {
	name    string
	aheadMs int32
	rack    *int32
	ids     *leasedIDs
	clock   *leaseClock
	pick    func(tried []string) string // a usable server that is not among these; empty: there is none
	onLost  func(reason string)
	draw    func() string // 128 random bits
	foreign bool          // the ids are made elsewhere: no tick is known to be unused

	held           *heldLease
	grant          *leaseRequest
	renewal        *leaseRequest
	releases       []*leaseRequest
	lastServer     string
	grantNotBefore time.Duration
	stopping       bool
	nextAt         time.Duration // steady clock: when due is to be called, at the latest
}

// stopped returns whether nothing is left to be sent after stop.
func (l *lessee) stopped() bool { return l.stopping && len(l.releases) == 0 }

// due returns the request to send now, or nil. Its outcome must be passed to done before the next call.
func (l *lessee) due() *leaseOrder {
	now, idTime := l.clock.steady(), l.ids.idTime()
	l.nextAt = now + lesseeTurnMax
	l.plan(now, idTime)
	l.releases = slices.DeleteFunc(l.releases, func(one *leaseRequest) bool { return !idTime.Before(one.useless) })
	planned := slices.DeleteFunc(append([]*leaseRequest{l.grant, l.renewal}, l.releases...),
		func(one *leaseRequest) bool { return one == nil })
	sort.SliceStable(planned, func(i, j int) bool { return planned[i].sendAt < planned[j].sendAt })
	for _, request := range planned {
		if request.sendAt <= now {
			if order := l.order(request, now); order != nil {
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
		l.release(&heldLease{terms: terms, server: terms.server, end: terms.start(terms.untilTick)}, "", terms.fromTick-1)
	}
}

// stop closes the ids for good, and requests the end of the lease.
func (l *lessee) stop() {
	if l.stopping {
		return
	}
	l.stopping = true
	used := l.ids.close(Closed, "the generator was closed")
	if l.held != nil && !l.held.unknown {
		l.release(l.held, l.lastTurn(), used)
	}
	l.held, l.grant, l.renewal = nil, nil, nil
}

// --- what is to be sent --------------------------------------------------------------------------

func (l *lessee) plan(now time.Duration, idTime time.Time) {
	held := l.held
	if held != nil {
		left := held.end.Sub(idTime)
		if left <= 0 && !held.expired {
			held.expired = true
			l.lose(fmt.Sprintf("the lease of machine id %d ended at %s, and no server extended it", held.terms.machine,
				utcText(held.end)))
		}
		if held.renewable && l.renewal == nil && now >= held.renewAt {
			l.renewal = &leaseRequest{method: methodRenewLease, turn: l.draw(), sendAt: now}
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
		if l.lastServer != "" {
			l.grant.tried = []string{l.lastServer}
		}
	}
}

func (l *lessee) order(request *leaseRequest, now time.Duration) *leaseOrder {
	address, said := request.server, leaseAsk{turn: request.turn}
	switch request.method {
	case methodLease:
		if address = l.serverFor(request, now); address == "" {
			return nil
		}
		said.token, said.name, said.rack = request.token, l.name, l.rack
	case methodRenewLease:
		address = l.held.server
		said.lease, said.acknowledged = l.held.terms.lease, l.held.acknowledged
	default:
		if said.lease = request.lease; !l.foreign {
			said.usedTick = &request.usedTick
		}
	}
	said.clockMs, said.aheadMs = l.clock.wall().UnixMilli(), &l.aheadMs
	return &leaseOrder{request, address, &ask{method: request.method, lease: said}}
}

// serverFor returns the server to ask for a lease. When all were tried, it begins again after a wait.
func (l *lessee) serverFor(grant *leaseRequest, now time.Duration) string {
	if grant.holder != "" && grant.repeats <= grantRepeats {
		return grant.holder
	}
	address := l.pick(grant.tried)
	if address == "" {
		grant.sendAt = now + max(grant.backOff(), grant.advice)
		grant.tried, grant.advice = nil, 0
	} else if grant.holder != "" && address != grant.holder {
		grant.token, grant.holder = l.draw(), ""
	}
	return address
}

// --- what was answered ---------------------------------------------------------------------------

func (l *lessee) granted(grant *leaseRequest, address string, terms *leaseTerms, problem *failure) {
	now := l.clock.steady()
	if terms != nil {
		used, fault := l.ids.adopt(terms)
		if fault == "" {
			l.hold(terms, used, now)
			return
		}
		l.ids.noteTrouble(address + " granted a lease that cannot be used: " + fault)
		grant.token, grant.holder = l.draw(), "" // this token would get the same lease
		grant.tried = append(grant.tried, address)
		grant.sendAt = now + grant.backOff()
		return
	}
	grant.advice = max(grant.advice, problem.retryAfter)
	switch {
	case problem.mayBeDone():
		if grant.holder != address {
			grant.holder, grant.repeats = address, 0
		}
		if grant.repeats++; grant.repeats <= grantRepeats {
			grant.sendAt = now + max(grant.backOff(), problem.retryAfter)
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

// hold replaces the lease before, whose ids are closed.
func (l *lessee) hold(terms *leaseTerms, used int64, now time.Duration) {
	if l.held != nil && !l.held.unknown {
		l.release(l.held, l.lastTurn(), used)
	}
	l.renewal, l.grant = nil, nil
	l.held = &heldLease{terms: terms, server: terms.server}
	l.lastServer, l.grantNotBefore = terms.server, now+grantPause
	l.schedule(l.held, terms, now)
}

// schedule sets the times of the lease after an answer.
func (l *lessee) schedule(held *heldLease, terms *leaseTerms, now time.Duration) {
	held.terms, held.end = terms, terms.start(terms.untilTick)
	left := max(held.end.Sub(l.ids.idTime()), 0)
	held.replaceAt = held.end.Add(-left / 3)
	held.renewAt = now + max(min(time.Duration(terms.renewInMs)*time.Millisecond, left/3), leaseRenewLeast)
	held.renewable = !terms.ending
	held.expired = held.expired && left == 0
}

func (l *lessee) renewed(renewal *leaseRequest, terms *leaseTerms, problem *failure) {
	held, now := l.held, l.clock.steady()
	if terms != nil {
		fault := terms.faultOfRenewal(held.terms)
		if fault == "" {
			l.ids.extend(terms.untilTick)
			held.acknowledged, held.server, l.renewal = renewal.turn, terms.server, nil
			l.schedule(held, terms, now)
			if l.grant != nil && l.grant.holder == "" && held.renewable {
				l.grant = nil // no server can have granted it
			}
			return
		}
		l.ids.noteTrouble(held.server + ": " + fault)
		problem = &failure{end: Broken}
	}
	switch fault := problem.leaseFault; {
	case fault == leaseRevoked || fault == leaseOutdated: // a later turn than this one was not this process's
		why := fmt.Sprintf("the lease of machine id %d was revoked: %s", held.terms.machine, problem.detail)
		l.ids.close(NoLease, why)
		l.held, l.renewal = nil, nil
		l.lose(why)
	case problem.lacksMethod || fault == leaseUnknown || fault == leaseNone || fault == leaseOther:
		held.renewable, held.unknown, held.replaceAt, l.renewal = false, true, time.Time{}, nil
	case !redirected(&held.server, renewal, problem):
		renewal.sendAt = now + max(renewal.backOff(), problem.retryAfter)
	}
}

// redirected follows the name of another server. It returns whether that is to be asked at once: the first time.
func redirected(server *string, request *leaseRequest, problem *failure) bool {
	if _, _, fault := splitAddress(problem.leaseServer); problem.leaseFault != leaseAnotherServers || fault != nil {
		return false
	}
	before := request.redirected
	*server, request.redirected = problem.leaseServer, true
	return !before
}

func (l *lessee) released(release *leaseRequest, problem *failure) {
	again := problem != nil && !problem.lacksMethod && (problem.end != WasRefused || problem.reason == NotReady ||
		problem.leaseFault == leaseAnotherServers)
	if !again {
		l.releases = slices.DeleteFunc(l.releases, func(one *leaseRequest) bool { return one == release })
		return
	}
	if !redirected(&release.server, release, problem) {
		release.sendAt = l.clock.steady() + max(release.backOff(), problem.retryAfter)
	}
}

// lastTurn returns the turn that was sent last, answered or not.
func (l *lessee) lastTurn() string {
	if l.renewal != nil {
		return l.renewal.turn
	}
	return l.held.acknowledged
}

func (l *lessee) release(held *heldLease, turn string, used int64) {
	if len(l.releases) == releasesMax {
		l.releases = l.releases[1:]
	}
	l.releases = append(l.releases, &leaseRequest{method: methodReleaseLease, lease: held.terms.lease,
		server: held.server, turn: turn, usedTick: used, useless: held.end, sendAt: l.clock.steady()})
}

func (l *lessee) lose(why string) {
	if l.onLost != nil {
		l.onLost(why)
	}
}

func itoa(number int32) string { return strconv.Itoa(int(number)) }
