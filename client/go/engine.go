package firn

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	askAgainMin  = 50 * time.Millisecond
	askAgainMax  = 5 * time.Minute
	noListYet    = time.Second
	noSuchMethod = time.Minute
)

// engine has the connections and background goroutines of a client, or of a generator, which share a fleet.
type engine struct {
	options  Options
	fleet    *fleet
	supplies map[string]*supply // of a client
	ctx      context.Context    // of its connections and goroutines
	end      context.CancelFunc // does not wait: calls in progress end with Closed
}

func newEngine(fleet *fleet) *engine {
	e := &engine{options: fleet.options, fleet: fleet, supplies: map[string]*supply{}}
	e.ctx, e.end = context.WithCancel(context.Background())
	keeps := false
	select {
	case fleet.keeper <- struct{}{}: // before an engine that is made later
		keeps = true
	default:
	}
	go e.upkeep(keeps)
	return e
}

func (e *engine) call(ctx context.Context, a *ask, until time.Time) (*answer, error) {
	got, fault := (&call{engine: e, ask: a, until: until}).run(ctx)
	if fault == nil {
		return got, nil
	}
	var told *Error
	if errors.As(fault, &told) && e.ctx.Err() != nil {
		told.Kind, told.Sentence = Closed, "the client was closed"
	}
	if told != nil && told.Kind == Refused {
		e.fleet.counts.refused.Add(1)
	} else {
		e.fleet.counts.failed.Add(1)
	}
	return got, fault
}

// deadlineOf returns the deadline of the context, or the default one.
func (e *engine) deadlineOf(ctx context.Context) time.Time {
	if until, has := ctx.Deadline(); has {
		return until
	}
	return time.Now().Add(e.options.Deadline)
}

// sleep waits for that time, or until news, or the end of the context or of this engine.
func (e *engine) sleep(ctx context.Context, pause time.Duration, news <-chan struct{}) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-news:
	case <-ctx.Done():
	case <-e.ctx.Done():
	}
}

// attempt is one server's answer, or a late one to an earlier attempt. While too many calls use its connections, the
// call waits for its turn until the deadline; it gives up its place when the server has failed meanwhile and an untried
// one is healthier.
func (e *engine) attempt(ctx context.Context, one *server, a *ask, fresh bool, deadline time.Time,
	tried map[*server]bool, late *lateAnswers) (*answer, *failure) {
	select {
	case one.room <- struct{}{}:
		defer func() { <-one.room }()
	default:
		if problem := e.awaitRoom(ctx, one, deadline); problem != nil {
			return nil, problem
		}
		defer func() { <-one.room }()
		if e.fleet.hasHealthier(one, a.tag, tried) {
			return nil, failed(NoRoom, "it failed while this call waited for a connection")
		}
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	made, problem := e.take(ctx, one, fresh, timer)
	if problem != nil {
		return nil, problem
	}
	defer made.load.Add(-1)
	return late.await(ctx, e.ctx, made, made.send(a, time.Now()), timer)
}

func (e *engine) awaitRoom(ctx context.Context, one *server, deadline time.Time) *failure {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case one.room <- struct{}{}:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	case <-e.ctx.Done():
	}
	return failed(NoRoom, "all connections were in use")
}

// connect opens a connection, which ends with the context. It asks for the server's status, and fails unless the server
// is of this cluster.
func (e *engine) connect(ctx context.Context, one *server, until time.Time) (*connection, *serverStatus, *failure) {
	e.fleet.mutex.Lock()
	spoke, secure := one.spoke, one.tls // not spoke of a connection that is opened meanwhile
	e.fleet.mutex.Unlock()
	made, status, problem := e.dial(ctx, one, secure, until)
	if problem != nil && ctx.Err() != nil {
		problem.counted = true // it says nothing about the server
		return nil, nil, problem
	}
	if e.fleet.dialled(one, problem == nil || problem.spoke()); problem == nil {
		return made, status, nil
	}
	if problem.mute && !spoke {
		problem.detail += ", during the first request: it may speak TLS, or require a certificate"
	}
	return nil, nil, problem
}

func (e *engine) dial(ctx context.Context, one *server, secure bool,
	until time.Time) (*connection, *serverStatus, *failure) {
	files := e.fleet.tls
	if !secure {
		files = nil
	}
	made, problem := connect(ctx, one.address, files, until)
	if problem != nil {
		return nil, nil, problem
	}
	made.mutex.Lock() // the context may end at once
	made.forget = context.AfterFunc(ctx, func() { made.close(unfinished(ConnClosed), false) })
	made.mutex.Unlock()
	got, problem := made.ask(askStatus(), until)
	if problem == nil {
		problem = e.fleet.admit(got.status)
	} else if problem.end == Broken || problem.spoke() {
		problem = failed(WrongService, problem.detail)
	} else {
		problem.mute = problem.end == ConnClosed
	}
	if problem != nil {
		made.hangUp()
		return nil, nil, problem
	}
	made.limit = e.options.AttemptLimit
	made.check = idCheck{timed: map[string]bool{}, wallMs: got.status.wallMs, saidAt: time.Now()}
	made.check.layout, _ = readLayout(got.status.layout)
	for _, tag := range got.status.tags {
		made.check.timed[tag.tag] = tag.strategy == "snowflake" && tag.asIssued
	}
	return made, got.status, nil
}

// upkeep does the background work of the fleet, one engine at a time: it probes ejected servers, and asks for lists.
func (e *engine) upkeep(keeps bool) {
	if !keeps {
		select {
		case e.fleet.keeper <- struct{}{}:
		case <-e.ctx.Done():
			return
		}
	}
	defer func() { <-e.fleet.keeper }()
	for e.ctx.Err() == nil {
		due, list, next := e.fleet.takeDue()
		for _, one := range due {
			go e.probe(one)
		}
		if list {
			e.askList()
		} else {
			e.sleep(e.ctx, time.Until(next), e.fleet.wake)
		}
	}
}

func (e *engine) probe(one *server) {
	made, status, problem := e.connect(e.ctx, one, time.Now().Add(e.options.AttemptLimit))
	if made != nil {
		made.hangUp()
	}
	if e.ctx.Err() == nil {
		e.fleet.probed(one, status, problem)
	}
}

func (e *engine) askList() {
	wait := noListYet
	if one := e.fleet.pick("", nil); one != nil {
		var problem *failure
		if wait, problem = e.askForList(one); problem != nil {
			e.fleet.failed(one, "", problem)
			wait = noListYet
		}
		e.fleet.giveBack(one)
	}
	e.fleet.mutex.Lock()
	e.fleet.listDue = time.Now().Add(wait)
	e.fleet.mutex.Unlock()
}

// askForList asks the server for its list, and returns when to ask again.
func (e *engine) askForList(one *server) (time.Duration, *failure) {
	e.fleet.mutex.Lock()
	known := e.fleet.version
	e.fleet.mutex.Unlock()
	until := time.Now().Add(2 * e.options.AttemptLimit) // to connect, and to get the answer
	got, problem := e.attempt(e.ctx, one, askServers(known), false, until, nil, &lateAnswers{})
	switch {
	case problem == nil:
	case problem.end == WasRefused && problem.retryAfter > 0:
		return problem.retryAfter, nil
	case problem.end == WasRefused:
		return noListYet, nil
	case problem.lacksMethod: // an older server: keep using the known addresses
		return noSuchMethod, nil
	default:
		return 0, problem
	}
	for _, gone := range e.fleet.apply(got.list, one) {
		gone.leave()
	}
	again := time.Duration(got.list.askAgainMs) * time.Millisecond
	return clamp(again, askAgainMin, askAgainMax), nil
}

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
		return nil, unfinished(ConnClosed)
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
	made, _, problem := e.connect(e.ctx, one, time.Now().Add(e.options.AttemptLimit))
	e.fleet.mutex.Lock()
	opening.made, opening.problem = made, problem
	one.dialling = nil
	if problem == nil {
		open := made.notify(func(unasked *failure) { e.ended(one, made, unasked) })
		// Of a server that no list has, it is closed after its first calls.
		if made.leaving = e.fleet.servers[one.address] != one; open && !made.leaving {
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
	if unasked != nil {
		e.fleet.counts.attempted(unasked)
		e.fleet.failed(one, "", unasked)
	}
}
