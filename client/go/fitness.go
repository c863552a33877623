package firn

import (
	"fmt"
	"time"

	wire "firn.io/go/firn/internal/wire"
)

// What a fleet makes of answers and failures, and of looks at servers that are out.

// admit fails unless the server that says `status` of itself is of this cluster.
func (f *fleet) admit(status *wire.ServerStatus) *failure {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if status.ClusterUUID == "" && f.uuid != "" {
		problem := failed(WasRefused, "it does not know its cluster yet")
		problem.reason = NotReady
		return problem
	}
	if f.uuid != "" && status.ClusterUUID != f.uuid {
		return failed(WrongService, fmt.Sprintf("its cluster is '%s', this one's '%s'",
			status.ClusterUUID, f.uuid))
	}
	if status.Layout == "" || (f.layout != "" && status.Layout != f.layout) {
		return failed(WrongService, fmt.Sprintf("its layout is '%s', this one's '%s'",
			status.Layout, f.layout))
	}
	f.uuid, f.layout = status.ClusterUUID, status.Layout
	for _, tag := range status.Tags {
		if tag.Strategy != "snowflake" {
			f.ownNumbers[tag.Tag] = true
		}
	}
	return nil
}

func (f *fleet) answered(one *server) {
	f.mutex.Lock()
	rested := one.health.resting()
	if !one.health.ill() && !rested {
		one.health.answered()
		f.mutex.Unlock()
		return
	}
	one.health, one.lookAt = health{}, time.Time{}
	f.tellNews()
	f.mutex.Unlock()
	if rested {
		f.tell("server back", one.address, "answers again")
	}
}

// failed takes to heart what an attempt came to.
func (f *fleet) failed(one *server, tag string, problem *failure) {
	switch {
	case problem.end == NoRoom || problem.stale:
	case problem.end == WasRefused:
		f.refused(one, tag, problem)
	case problem.end == Broken || problem.end == WrongService:
		f.trouble()
		f.quarantine(one, problem.detail)
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
	switch problem.reason {
	case Internal:
		f.count(one, 1, problem)
		return
	case BadRequest, UnknownTag, Rejected, Exhausted:
		f.answered(one)
		return
	}
	f.mutex.Lock()
	one.why = fmt.Sprintf("%s: %s", problem.reason, problem.detail)
	began := false
	switch problem.reason {
	case NotReady, Clock:
		one.notReadyUntil = now.Add(advice)
	case StoreDown:
		remember(one.downUntil, tag, now.Add(advice))
	case Draining:
		remember(one.closedUntil, tag, now.Add(lookAgain))
		if began = !one.draining; began {
			one.draining, one.lookAt = true, now
		}
	}
	f.mutex.Unlock()
	if began {
		f.trouble()
		f.tell("draining", one.address, problem.detail)
	}
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
	if one.health.resting() || !one.health.ill() || !f.mayRest() {
		f.mutex.Unlock()
		return
	}
	one.why = fmt.Sprintf("%s: %s", problem.end, problem.detail)
	length := one.health.rest(time.Now())
	one.lookAt = one.health.restUntil
	f.mutex.Unlock()
	f.tell("server out", one.address, fmt.Sprintf("rests for %v; %s", length, one.why))
}

// mayRest: never more than half of the enabled servers rest. Under the mutex.
func (f *fleet) mayRest() bool {
	enabled, rest := 0, 0
	for _, one := range f.servers {
		if one.online {
			enabled++
			if one.health.resting() {
				rest++
			}
		}
	}
	return (rest+1)*2 <= enabled
}

func (f *fleet) quarantine(one *server, why string) {
	f.mutex.Lock()
	began := !one.quiet
	one.quiet, one.why = true, why
	one.quarantine = clamp(2*one.quarantine, 0, longestRest)
	one.lookAt = time.Now().Add(upperHalf(one.quarantine))
	f.mutex.Unlock()
	if began {
		f.tell("quarantined", one.address, why)
	}
}

// takeLooks are servers whose status is to be asked now, and when the next look is due.
func (f *fleet) takeLooks() (due []*server, next time.Time) {
	now := time.Now()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, one := range f.servers {
		if one.lookAt.IsZero() {
			continue
		}
		if !one.lookAt.After(now) {
			due = append(due, one)
			one.lookAt = now.Add(lookAgain)
		}
		if next.IsZero() || one.lookAt.Before(next) {
			next = one.lookAt
		}
	}
	return due, next
}

// looked is told what a look in the background came to: the status, or a failure.
func (f *fleet) looked(one *server, status *wire.ServerStatus, problem *failure) {
	if problem != nil && (problem.end == Broken || problem.end == WrongService) {
		f.quarantine(one, problem.detail)
		return
	}
	now := time.Now()
	f.mutex.Lock()
	if problem != nil { // nobody knows yet: the look is taken again
		one.lookAt = now.Add(lookFailed)
		if one.health.resting() {
			one.health.rest(now)
			one.lookAt = one.health.restUntil
		}
		f.mutex.Unlock()
		return
	}
	out := one.draining || one.quiet || one.health.resting()
	one.draining, one.quiet = status.State == wire.ServerState_DRAINING, false
	one.health, one.lookAt = health{}, time.Time{}
	if one.draining {
		one.lookAt = now.Add(lookAgain)
	}
	back := out && !one.draining
	if back {
		f.tellNews()
	}
	f.mutex.Unlock()
	if back {
		f.tell("server back", one.address, "answers again")
	}
}
