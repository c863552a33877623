package firn

import (
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	movesEvery   = 10 // attempt limits after which a server that hangs again frees retries again
	upkeepPause  = time.Second
	troublePause = time.Second
)

// How answers, failures and probes change the standing of servers.

// admit fails unless the server with this status is of this cluster.
func (f *fleet) admit(status *serverStatus) *failure {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if status.clusterUUID == "" && f.uuid != "" {
		problem := failed(WasRefused, "it does not know its cluster yet")
		problem.reason, problem.anotherMayHelp = NotReady, true
		return problem
	}
	if f.uuid != "" && status.clusterUUID != f.uuid {
		return failed(WrongService, fmt.Sprintf("its cluster is '%s', not '%s'",
			status.clusterUUID, f.uuid))
	}
	if status.layout == "" || (f.layout != "" && status.layout != f.layout) {
		return failed(WrongService, fmt.Sprintf("its layout is '%s', not '%s'",
			status.layout, f.layout))
	}
	f.uuid, f.layout = status.clusterUUID, status.layout
	for _, tag := range status.tags {
		if tag.strategy != "snowflake" {
			f.ownNumbers[tag.tag] = true
		}
	}
	return nil
}

// answered records that a server has answered a call that began then, or refused it as every server would. A
// server that gave ids to a call that began after a refusal no longer drains.
func (f *fleet) answered(one *server, tag string, refused bool, began time.Time) {
	f.mutex.Lock()
	back := one.health.out
	one.answeredAt = time.Now()
	if !refused && !began.Before(one.drainsSince) {
		back = back || one.draining
		one.draining = false
		delete(one.closedUntil, tag)
	}
	if !one.health.tooManyFailures() && !back {
		one.health.answered()
		f.mutex.Unlock()
		return
	}
	one.health = health{}
	if !one.quarantined && !one.draining {
		one.probeAt = time.Time{}
	}
	f.tellNews()
	f.mutex.Unlock()
	if back {
		f.tell("healthy", one.address, "answers again")
	}
}

// connected records that a connection for a lease was opened. It ends no ejection: probes and calls do.
func (f *fleet) connected(one *server) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !one.health.out {
		one.health.answered()
	}
}

// failed records the failure of an attempt.
func (f *fleet) failed(one *server, tag string, problem *failure) {
	switch {
	case problem.end == NoRoom || problem.stale || problem.lacksMethod || problem.counted:
	case problem.end == WasRefused:
		f.refused(one, tag, problem)
	case problem.end == Broken || problem.end == WrongService:
		f.trouble()
		f.quarantine(one, problem, false)
	case problem.end == ConnectTimeout:
		f.trouble()
		f.count(one, 2, problem)
	default:
		f.trouble()
		f.count(one, 1, problem)
	}
}

func (f *fleet) refused(one *server, tag string, problem *failure) {
	now, advice := time.Now(), problem.retryAfter
	if advice == 0 {
		advice = noAdvice
	}
	until := now.Add(atLeast(advice))
	if problem.reason == Internal {
		f.count(one, 1, problem)
		return
	}
	if refusalRules[problem.reason].isAnswer {
		f.answered(one, tag, true, now)
		return
	}
	f.mutex.Lock()
	one.why = fmt.Sprintf("%s: %s", problem.reason, problem.detail)
	began := false
	switch problem.reason {
	case NotReady, Clock:
		one.notReadyUntil = until
	case StoreDown:
		remember(one.downUntil, tag, until)
	case Draining:
		one.drainsSince = now
		remember(one.closedUntil, tag, now.Add(atLeast(probeAgain)))
		if began = !one.draining && !one.quarantined; began {
			one.draining, one.probeAt = true, now
		}
	}
	f.mutex.Unlock()
	if began {
		f.trouble()
		f.tell("draining", one.address, problem.detail)
	}
}

// atLeast adds up to half at random, so that not all clients return at the same moment.
func atLeast(advice time.Duration) time.Duration {
	return advice + time.Duration(rand.Int64N(int64(advice/2)+1))
}

func remember(times map[string]time.Time, tag string, until time.Time) {
	if len(times) >= rememberMost {
		for one := range times {
			delete(times, one)
		}
	}
	times[tag] = until
}

func (f *fleet) count(one *server, times int, problem *failure) {
	f.mutex.Lock()
	one.health.failed(times)
	if one.health.out || !one.health.tooManyFailures() {
		f.mutex.Unlock()
		return
	}
	one.why = problem.String()
	length, what := f.takeOut(one), "called last"
	if one.health.ejected {
		what = "ejected"
	}
	f.mutex.Unlock()
	f.tell("unhealthy", one.address, fmt.Sprintf("%s for %v; %s", what, length, one.why))
}

// takeOut must be called under the mutex.
func (f *fleet) takeOut(one *server) time.Duration {
	now := time.Now()
	length := one.health.takeOut(f.mayLeave(one), now)
	if !one.quarantined && !one.draining {
		one.probeAt = now.Add(length)
	}
	return length
}

// mayLeave returns whether the server may be ejected or quarantined: at most half of the enabled servers may be.
// Foreign servers do not count. Under the mutex.
func (f *fleet) mayLeave(leaving *server) bool {
	members, out := 0, 0
	for _, one := range f.servers {
		if !one.online || one.foreign {
			continue
		}
		members++
		if one != leaving && (one.health.ejected || one.quarantined) {
			out++
		}
	}
	return (out+1)*2 <= members
}

// quarantine is for a server that breaks the protocol, or is foreign: of another cluster or service. Invalid
// answers on its other connections do not extend the quarantine; a failed probe does.
func (f *fleet) quarantine(one *server, problem *failure, probed bool) {
	now, foreign := time.Now(), problem.end == WrongService
	f.mutex.Lock()
	began := !one.quarantined
	if !foreign && began && !f.mayLeave(one) {
		f.mutex.Unlock()
		f.count(one, failuresInARow, problem)
		return
	}
	if began || probed || (foreign && !one.foreign) {
		one.quarantined, one.foreign, one.why = true, foreign || one.foreign, problem.detail
		one.probeAt = now.Add(one.untilNextProbe(now))
	}
	f.mutex.Unlock()
	if began {
		f.tell("quarantined", one.address, problem.detail)
	}
}

// untilNextProbe begins a pause between two probes. Under the mutex.
func (s *server) untilNextProbe(now time.Time) time.Duration {
	if s.quarantined && !s.foreign {
		return s.quarantine.next(now, probeAgain, longestQuarantine)
	}
	return s.probeBackoff.next(now, probeFirst, probeAgain)
}

// trouble asks for the list after a failed call, within a random time of at most 1 s, because other clients see the same
// failure.
func (f *fleet) trouble() {
	f.mutex.Lock()
	soon := time.Now()
	if least := f.listAsked.Add(troublePause); soon.Before(least) {
		soon = least
	}
	soon = soon.Add(time.Duration(rand.Int64N(int64(troublePause))))
	if !f.listDue.IsZero() && soon.Before(f.listDue) {
		f.listDue = soon
	}
	f.mutex.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// takeDue returns the servers to probe now, whether to ask for the list, and when to call it again.
func (f *fleet) takeDue() (due []*server, list bool, next time.Time) {
	now := time.Now()
	next = now.Add(upkeepPause)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !f.listDue.IsZero() {
		if list = !f.listDue.After(now); list {
			f.listAsked = now
		} else if f.listDue.Before(next) {
			next = f.listDue
		}
	}
	for _, one := range f.servers {
		if one.probeAt.IsZero() {
			continue
		}
		if !one.probeAt.After(now) {
			due = append(due, one)
			one.probeAt = now.Add(probeAgain)
		}
		if one.probeAt.Before(next) {
			next = one.probeAt
		}
	}
	return due, list, next
}

// probed records the result of a background probe: the status, or a failure.
func (f *fleet) probed(one *server, status *serverStatus, problem *failure) {
	if problem != nil && (problem.end == Broken || problem.end == WrongService) {
		f.quarantine(one, problem, true)
		return
	}
	now := time.Now()
	f.mutex.Lock()
	if problem != nil { // the probe is repeated
		one.probeAt = now.Add(one.untilNextProbe(now))
		if one.health.out {
			f.takeOut(one)
		}
		f.mutex.Unlock()
		return
	}
	out := one.draining || one.quarantined || one.health.out
	one.draining, one.quarantined, one.foreign = status.state == stateDraining, false, false
	one.health.seen()
	one.probeAt = time.Time{}
	if one.draining {
		one.probeAt = now.Add(probeAgain)
	}
	back := out && !one.draining
	if back {
		f.tellNews()
	}
	f.mutex.Unlock()
	if back {
		f.tell("healthy", one.address, "answers again")
	}
}

// dialled records whether a connection, up to the server's status, could be opened. After a failure no
// call opens a connection for 10 ms, doubling to 100 ms.
func (f *fleet) dialled(one *server, reached bool) {
	now := time.Now()
	f.counts.connects.Add(1)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !reached {
		f.counts.connectsFailed.Add(1)
		one.dialFailed, one.spoke = true, false
		one.connectAt = now.Add(one.dialPause.next(now, firstDialPause, longestDialPause))
		return
	}
	one.connectAt, one.spoke = time.Time{}, true
	if one.dialFailed {
		one.dialFailed = false
		f.tellNews() // calls that wait for the pause to end
	}
}

// pausedUntil is when the first server that is not tried may be connected to again; zero: none has to wait.
func (f *fleet) pausedUntil(tried map[*server]bool) (first time.Time) {
	now := time.Now()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, one := range f.servers {
		if !tried[one] && !one.foreign && !one.mayServe(now) && (first.IsZero() || one.connectAt.Before(first)) {
			first = one.connectAt
		}
	}
	return first
}

func (f *fleet) callBegins() {
	f.counts.calls.Add(1)
	f.mutex.Lock()
	f.budget.earn(retriesPerCall)
	f.mutex.Unlock()
}

func (f *fleet) takeRetry() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !f.budget.take(time.Now()) {
		f.counts.retriesDenied.Add(1)
		return false
	}
	f.counts.retries.Add(1)
	return true
}

// mayMove returns whether a call whose attempt timed out fails over free of the retry budget: another call timed
// out at the server since this attempt began, another server has answered since, and the server has not lost
// calls so recently. One hung server then does not use up the budget.
func (f *fleet) mayMove(from *server, began time.Time) bool {
	now, limit, others := time.Now(), f.options.AttemptLimit, false
	f.mutex.Lock()
	defer f.mutex.Unlock()
	shared := from.lostAt.After(began)
	from.lostAt = now
	for _, one := range f.servers {
		others = others || (one != from && one.answeredAt.After(began))
	}
	if !shared || !others {
		return false
	}
	if !now.Before(from.movesAgainAt) {
		from.movesUntil, from.movesAgainAt = now.Add(limit), now.Add(movesEvery*limit)
	}
	return now.Before(from.movesUntil)
}
