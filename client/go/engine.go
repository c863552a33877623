package firn

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	askAgainMin  = 50 * time.Millisecond
	askAgainMax  = 5 * time.Minute
	noListYet    = time.Second
	noSuchMethod = time.Minute
	troublePause = time.Second
)

// engine has the parts of a client: the fleet, its connections and the background goroutines.
type engine struct {
	options  Options
	fleet    *fleet
	tls      *tlsFiles
	supplies map[string]*supply
	ctx      context.Context // of background goroutines; ends with the client
	end      context.CancelFunc
	closed   atomic.Bool // before ctx ends
	wake     chan struct{}

	mutex     sync.Mutex
	open      map[*connection]bool
	listDue   time.Time
	listAsked time.Time
}

func newEngine(options Options, seeds []string, listsChange bool) *engine {
	e := &engine{options: options, fleet: newFleet(options, seeds, listsChange), tls: &tlsFiles{},
		supplies: map[string]*supply{}, open: map[*connection]bool{}, wake: make(chan struct{}, 1)}
	if options.TLS != nil {
		e.tls.said = *options.TLS
	}
	e.ctx, e.end = context.WithCancel(context.Background())
	e.fleet.trouble = e.askListSoon
	if listsChange {
		e.listDue = time.Now()
	}
	for _, tag := range options.LocalRanges {
		e.supplies[tag.Tag] = newSupply(tag, e)
	}
	go e.upkeep()
	return e
}

// close does not wait: calls in progress end with Closed.
func (e *engine) close() {
	e.closed.Store(true)
	e.end()
	e.mutex.Lock()
	all := make([]*connection, 0, len(e.open))
	for one := range e.open {
		all = append(all, one)
	}
	e.mutex.Unlock()
	for _, one := range all {
		one.close(failed(ConnClosed, "the client was closed"), false)
	}
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

// sleep waits for that time, or until news, the end of the context or the end of the client.
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

// attempt is one server's answer. While too many calls use its connections, the call waits for its turn until the
// deadline; it gives up its place when the server has failed meanwhile and an untried one is healthier.
func (e *engine) attempt(ctx context.Context, one *server, a *ask, fresh bool, deadline time.Time,
	tried map[*server]bool) (*answer, *failure) {
	return e.attemptBeside(ctx, one, a, fresh, deadline, tried, &lateAnswers{})
}

// attemptBeside also takes the answer of an earlier attempt that is late.
func (e *engine) attemptBeside(ctx context.Context, one *server, a *ask, fresh bool, deadline time.Time,
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

// connect opens a connection, asks for the server's status, and fails unless the server is of this
// cluster.
func (e *engine) connect(ctx context.Context, one *server, secure bool,
	until time.Time) (*connection, *serverStatus, *failure) {
	e.fleet.mutex.Lock()
	spoke := one.spoke // not that of a connection that is opened meanwhile
	e.fleet.mutex.Unlock()
	made, status, problem := e.dial(ctx, one, secure, until)
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
	ctx, stop := e.whileOpen(ctx)
	defer stop()
	files := e.tls
	if !secure {
		files = nil
	}
	made, problem := connect(ctx, one.address, files, until)
	if problem != nil {
		return nil, nil, problem
	}
	e.mutex.Lock()
	e.open[made] = true
	closed := e.ctx.Err() != nil
	e.mutex.Unlock()
	if closed {
		e.drop(made)
		return nil, nil, failed(Unreachable, "the client was closed")
	}
	got, problem := made.ask(askStatus(), until)
	if problem == nil {
		problem = e.fleet.admit(got.status)
	} else if problem.end == Broken || problem.spoke() {
		problem = failed(WrongService, problem.detail)
	} else {
		problem.mute = problem.end == ConnClosed
	}
	if problem != nil {
		e.drop(made)
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

// whileOpen returns a context that also ends when the client is closed. The caller must call stop.
func (e *engine) whileOpen(ctx context.Context) (joined context.Context, stop func()) {
	joined, cancel := context.WithCancel(ctx)
	forget := context.AfterFunc(e.ctx, cancel)
	return joined, func() {
		forget()
		cancel()
	}
}

func (e *engine) drop(made *connection) {
	e.mutex.Lock()
	delete(e.open, made)
	e.mutex.Unlock()
	made.hangUp()
}

// upkeep does the background work: it probes ejected servers, and asks for lists.
func (e *engine) upkeep() {
	for e.ctx.Err() == nil {
		due, next := e.fleet.takeProbes()
		for _, one := range due {
			go e.probe(one)
		}
		e.mutex.Lock()
		ask := !e.listDue.IsZero() && !e.listDue.After(time.Now())
		e.mutex.Unlock()
		if ask {
			e.askList()
		}
		pause := time.Second
		for _, at := range []time.Time{next, e.nextList()} {
			if left := time.Until(at); !at.IsZero() && left < pause {
				pause = left
			}
		}
		e.sleep(e.ctx, pause, e.wake)
	}
}

func (e *engine) nextList() time.Time {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.listDue
}

// askListSoon asks for the list after a failed call, within a random time of at most 1 s, because other
// clients see the same failure.
func (e *engine) askListSoon() {
	e.mutex.Lock()
	soon := time.Now()
	if least := e.listAsked.Add(troublePause); soon.Before(least) {
		soon = least
	}
	soon = soon.Add(time.Duration(rand.Int64N(int64(troublePause))))
	if !e.listDue.IsZero() && soon.Before(e.listDue) {
		e.listDue = soon
	}
	e.mutex.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *engine) probe(one *server) {
	e.fleet.mutex.Lock()
	secure := one.tls
	e.fleet.mutex.Unlock()
	made, status, problem := e.connect(e.ctx, one, secure, time.Now().Add(e.options.AttemptLimit))
	if made != nil {
		e.drop(made)
	}
	e.fleet.probed(one, status, problem)
}

func (e *engine) askList() {
	e.mutex.Lock()
	e.listAsked = time.Now()
	e.mutex.Unlock()
	wait := noListYet
	if one := e.fleet.pick("", nil); one != nil {
		var problem *failure
		if wait, problem = e.askForList(one); problem != nil {
			e.fleet.failed(one, "", problem)
			wait = noListYet
		}
		e.fleet.giveBack(one)
	}
	e.mutex.Lock()
	e.listDue = time.Now().Add(wait)
	e.mutex.Unlock()
}

// askForList asks the server for its list, and returns when to ask again.
func (e *engine) askForList(one *server) (time.Duration, *failure) {
	e.fleet.mutex.Lock()
	known := e.fleet.version
	e.fleet.mutex.Unlock()
	until := time.Now().Add(2 * e.options.AttemptLimit) // to connect, and to get the answer
	got, problem := e.attempt(e.ctx, one, askServers(known), false, until, nil)
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
