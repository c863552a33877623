package firn

import (
	"context"
	"slices"
	"time"
)

// The connections that the calls to a server share.

// dialling is a connection that is being opened.
type dialling struct {
	done    chan struct{}
	made    *connection
	problem *failure
}

// take returns the least busy connection of the server, which counts as busier until the caller decreases its load.
// Opens another one, up to the limit, while none is idle. Waits for it if there is no other, or if it must be fresh.
func (e *engine) take(ctx context.Context, one *server, fresh bool, timer *time.Timer) (*connection, *failure) {
	e.fleet.mutex.Lock()
	var made *connection
	for _, other := range one.conns {
		if made == nil || other.load.Load() < made.load.Load() {
			made = other
		}
	}
	idle := made != nil && made.load.Load() == 0 && !fresh
	room := len(one.conns) < e.options.ConnectionsMax || fresh
	if one.dialling == nil && !idle && room && !time.Now().Before(one.connectAt) {
		one.dialling = &dialling{done: make(chan struct{})}
		go e.openConnection(one, one.dialling)
	}
	opening := one.dialling
	if made != nil && (!fresh || opening == nil) {
		made.load.Add(1)
		e.fleet.mutex.Unlock()
		return made, nil
	}
	e.fleet.mutex.Unlock()
	if opening == nil {
		problem := failed(NoRoom, "a connection to it has just failed")
		problem.paused = true
		return nil, problem
	}
	select {
	case <-opening.done:
	case <-timer.C:
		return nil, unfinished(ConnectTimeout)
	case <-ctx.Done():
		return nil, unfinished(ConnectTimeout)
	case <-e.ctx.Done():
		return nil, failed(Unreachable, "the client was closed")
	}
	if opening.problem == nil {
		opening.made.load.Add(1)
		return opening.made, nil
	}
	problem := *opening.problem
	problem.counted = true
	return nil, &problem
}

// openConnection opens a connection for the calls that wait for it, and for later ones.
func (e *engine) openConnection(one *server, opening *dialling) {
	e.fleet.mutex.Lock()
	secure := one.tls
	e.fleet.mutex.Unlock()
	made, _, problem := e.connect(e.ctx, one, secure, time.Now().Add(e.options.AttemptLimit))
	e.fleet.mutex.Lock()
	opening.made, opening.problem = made, problem
	one.dialling = nil
	if problem == nil {
		made.onEnd = func(unasked *failure) { e.ended(one, made, unasked) }
		// Of a server that no list has, it is closed after its first calls.
		if made.leaving = e.fleet.servers[one.address] != one; !made.leaving {
			one.conns = append(one.conns, made)
		}
		go made.read()
	}
	e.fleet.mutex.Unlock()
	if problem != nil { // once for all calls that wait
		e.fleet.failed(one, "", problem)
	}
	close(opening.done)
}

// ended forgets a connection that has ended.
func (e *engine) ended(one *server, made *connection, unasked *failure) {
	e.fleet.mutex.Lock()
	one.conns = slices.DeleteFunc(one.conns, func(other *connection) bool { return other == made })
	e.fleet.mutex.Unlock()
	e.mutex.Lock()
	delete(e.open, made)
	e.mutex.Unlock()
	if unasked != nil {
		e.fleet.counts.attempted(unasked)
		e.fleet.failed(one, "", unasked)
	}
}
