package firn

import (
	"bufio"
	"context"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	inFlightMax = 256       // calls on one connection, if others are equally busy
	bufferMost  = 64 << 10  // kept by a connection
	readAtOnce  = 256 << 10 // of a long answer: memory grows with what has arrived
	graces      = 8         // of the time of an attempt
)

// exchange is a request on a connection, and its answer. The connection's mutex guards it until it has ended.
type exchange struct {
	ask      *ask
	sequence int32
	stale    bool // an earlier call used the connection: if it is closed, the call may try again
	sent     time.Time
	watched  time.Time // when it was sent, or last found to be late
	late     bool      // no answer within the time of an attempt, while others arrive
	ended    bool
	got      *answer
	problem  *failure
	changed  chan struct{} // receives a value when it is late, and when it has ended
	another  chan struct{} // of a late one, too
}

// connection is a connection to one server with many requests in flight, which the server answers in their order.
// Any failure but a refusal closes it and ends all requests on it, so a late answer cannot be taken for the answer to
// another call.
type connection struct {
	socket net.Conn
	in     *bufio.Reader // reads head and body of a short answer at once
	buffer []byte        // of answers
	check  idCheck
	limit  time.Duration          // without an answer
	onEnd  func(unasked *failure) // called once, without the mutex; unasked: an answer to no request
	forget func() bool            // its context
	load   atomic.Int32           // calls that use it

	mutex     sync.Mutex
	out       []byte // requests that are not written yet
	writing   bool
	queue     []*exchange
	sequence  int32
	used      bool
	leaving   bool // closed when its calls have ended
	closed    *failure
	heardAt   time.Time // the last answer
	watchAt   time.Time // when watch runs next; zero: it does not
	deferrals int       // times in a row that watch has waited for answers to be read
}

// ask sends a request and reads its answer, before the connection is shared.
func (c *connection) ask(a *ask, until time.Time) (*answer, *failure) {
	_ = c.socket.SetDeadline(until)
	c.sequence++
	if _, fault := c.socket.Write(a.appendRequest(nil, c.sequence)); fault != nil {
		return nil, readFailure(fault)
	}
	frame, _, problem := c.readFrame()
	if problem != nil {
		return nil, problem
	}
	_ = c.socket.SetDeadline(time.Time{})
	return a.readAnswer(frame, c.sequence)
}

// send queues the request, and writes it unless another goroutine is about to.
func (c *connection) send(a *ask, now time.Time) *exchange {
	x := &exchange{ask: a, sent: now, watched: now, changed: make(chan struct{}, 2)}
	c.mutex.Lock()
	if c.closed != nil {
		x.ended, x.problem = true, c.failureOf(x, true)
		c.mutex.Unlock()
		x.changed <- struct{}{}
		return x
	}
	c.sequence++
	x.sequence, x.stale = c.sequence, c.used
	alone := len(c.queue) == 0
	c.queue = append(c.queue, x)
	c.out = a.appendRequest(c.out, x.sequence)
	if c.watchAt.IsZero() {
		c.watchIn(c.limit)
	}
	begins := !c.writing
	c.writing = true
	c.mutex.Unlock()
	if begins && alone { // the socket's buffer is empty, so this does not block
		c.flush()
	} else if begins {
		go func() {
			runtime.Gosched() // other calls add their requests
			c.flush()
		}()
	}
	return x
}

func (c *connection) flush() {
	var spare []byte
	for {
		c.mutex.Lock()
		if len(c.out) == 0 || c.closed != nil {
			c.out, c.writing = spare[:0], false
			c.mutex.Unlock()
			return
		}
		batch := c.out
		c.out = spare[:0]
		c.mutex.Unlock()
		_ = c.socket.SetWriteDeadline(time.Now().Add(c.limit))
		if _, fault := c.socket.Write(batch); fault != nil {
			c.close(readFailure(fault), true)
		}
		if spare = batch; cap(spare) > bufferMost {
			spare = nil
		}
	}
}

// read takes answers until the connection ends.
func (c *connection) read() {
	for {
		frame, whole, problem := c.readFrame()
		if problem != nil {
			c.close(problem, whole)
			return
		}
		now := time.Now()
		c.mutex.Lock()
		if len(c.queue) == 0 || c.closed != nil {
			c.mutex.Unlock()
			c.end(failed(Broken, "an answer belongs to no call"), false, true)
			return
		}
		x := c.queue[0]
		c.heardAt, c.used = now, true
		c.mutex.Unlock()
		got, problem := x.ask.readAnswer(frame, x.sequence)
		if problem == nil {
			if fault := c.check.faultOf(x.ask.tag, got.ids); fault != "" {
				problem = failed(Broken, fault)
			}
		}
		c.mutex.Lock()
		if c.closed != nil { // meanwhile, which has ended the request
			c.mutex.Unlock()
			return
		}
		if c.queue = c.queue[1:]; len(c.queue) == 0 {
			c.queue = nil
		}
		c.finish(x, got, problem)
		left := c.leaving && len(c.queue) == 0
		c.mutex.Unlock()
		if problem != nil && !problem.spoke() {
			c.close(failed(ConnClosed, "another answer was invalid"), false)
			return
		}
		if left {
			c.close(failed(ConnClosed, ""), false)
			return
		}
	}
}

// finish ends a request. Under the mutex.
func (c *connection) finish(x *exchange, got *answer, problem *failure) {
	x.ended, x.got, x.problem = true, got, problem
	x.changed <- struct{}{}
	if x.another != nil {
		select {
		case x.another <- struct{}{}:
		default:
		}
	}
}

// readFrame returns the next frame, which is valid until the next call. Of a failure, it returns whether no byte of
// the frame had arrived.
func (c *connection) readFrame() (frame []byte, whole bool, problem *failure) {
	var head [4]byte
	if got, fault := io.ReadFull(c.in, head[:]); fault != nil {
		return nil, got == 0 && !isTimeout(fault), readFailure(fault)
	}
	size, problem := frameSize(head[:])
	if problem != nil {
		return nil, false, problem
	}
	if size <= cap(c.buffer) {
		frame = c.buffer[:size]
		if _, fault := io.ReadFull(c.in, frame); fault != nil {
			return nil, false, readFailure(fault)
		}
		return frame, false, nil
	}
	for frame = c.buffer[:0]; len(frame) < size; {
		begin := len(frame)
		frame = append(frame, make([]byte, min(size-begin, readAtOnce))...)
		if _, fault := io.ReadFull(c.in, frame[begin:]); fault != nil {
			return nil, false, readFailure(fault)
		}
	}
	if cap(frame) <= bufferMost {
		c.buffer = frame
	}
	return frame, false, nil
}

// watch closes the connection if no answer has arrived for the time of an attempt. Otherwise, requests that have
// waited as long are late.
func (c *connection) watch() {
	runtime.Gosched() // answers that arrived while the process was busy are read first
	now := time.Now()
	c.mutex.Lock()
	// This process was late itself, so answers are read first. At most for an attempt's time more: it may be late
	// each time.
	if c.deferrals < graces && now.Sub(c.watchAt) > c.limit/graces {
		c.deferrals++
		c.watchIn(c.limit / graces)
		c.mutex.Unlock()
		return
	}
	c.deferrals = 0
	next := time.Time{}
	for _, x := range c.queue {
		if now.Sub(x.watched) >= c.limit {
			if !c.heardAt.After(x.watched) {
				c.mutex.Unlock()
				c.close(failed(Timeout, ""), false)
				return
			}
			x.watched = now
			if !x.late {
				x.late = true
				x.changed <- struct{}{}
			}
		}
		if next.IsZero() || x.watched.Before(next) {
			next = x.watched
		}
	}
	c.watchAt = time.Time{}
	if !next.IsZero() {
		c.watchIn(next.Add(c.limit).Sub(now))
	}
	c.mutex.Unlock()
}

// watchIn runs watch after that time. Under the mutex.
func (c *connection) watchIn(pause time.Duration) {
	c.watchAt = time.Now().Add(pause)
	time.AfterFunc(pause, c.watch)
}

// leave closes the connection when its calls have ended.
func (c *connection) leave() {
	c.mutex.Lock()
	c.leaving = true
	idle := len(c.queue) == 0
	c.mutex.Unlock()
	if idle {
		c.close(failed(ConnClosed, ""), true)
	}
}

// close ends the connection and all requests on it. whole: it did not end within an answer.
func (c *connection) close(why *failure, whole bool) { c.end(why, whole, false) }

func (c *connection) end(why *failure, whole, unasked bool) {
	c.mutex.Lock()
	if c.closed != nil {
		c.mutex.Unlock()
		return
	}
	c.closed = why
	for _, x := range c.queue {
		c.finish(x, nil, c.failureOf(x, whole))
	}
	c.queue = nil
	onEnd := c.onEnd
	c.mutex.Unlock()
	c.hangUp()
	if onEnd == nil {
		return
	}
	if !unasked {
		why = nil
	}
	onEnd(why)
}

// failureOf returns why the connection has ended, for one of its requests. Under the mutex.
func (c *connection) failureOf(x *exchange, whole bool) *failure {
	problem := *c.closed
	problem.stale = problem.end == ConnClosed && whole && (x.stale || x.sequence == 0)
	tooLittleTime := problem.end == Timeout && 2*time.Since(x.sent) < c.limit
	problem.counted = problem.counted || tooLittleTime
	return &problem
}

// lateAnswers are the requests of one call that are late: the call takes whichever answer comes first.
type lateAnswers struct {
	all     []lateAnswer
	another chan struct{} // receives a value when one of them has ended
}

type lateAnswer struct {
	connection *connection
	exchange   *exchange
}

// await returns the answer to the request, or to an earlier one that is late. The timer is the end of the call.
func (l *lateAnswers) await(ctx, closing context.Context, c *connection, x *exchange,
	timer *time.Timer) (*answer, *failure) {
	for {
		over := false
		select {
		case <-x.changed:
		case <-l.another:
			if got := l.take(); got != nil {
				return got, nil
			}
			continue
		case <-timer.C:
			runtime.Gosched() // an answer that arrived while the process was busy is read first
			over = true
		case <-ctx.Done():
			return nil, unfinished(Timeout)
		case <-closing.Done():
			return nil, unfinished(ConnClosed)
		}
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if x.ended {
			return x.got, x.problem
		}
		problem := failed(Timeout, "")
		if over {
			problem.counted = 2*time.Since(x.sent) < c.limit
			return nil, problem
		}
		if l.another == nil {
			l.another = make(chan struct{}, 1)
		}
		x.another = l.another
		l.all = append(l.all, lateAnswer{c, x})
		return nil, problem
	}
}

// take returns an answer that has arrived late, or nil.
func (l *lateAnswers) take() (got *answer) {
	waiting := l.all[:0]
	for _, one := range l.all {
		one.connection.mutex.Lock()
		if !one.exchange.ended {
			waiting = append(waiting, one)
		} else if one.exchange.got != nil && one.exchange.problem == nil {
			got = one.exchange.got
			got.late = true
		}
		one.connection.mutex.Unlock()
	}
	l.all = waiting
	return got
}

// awaitAny waits for a late answer until that time; nil: there is none.
func (l *lateAnswers) awaitAny(ctx, closing context.Context, until time.Time) *answer {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for {
		if got := l.take(); got != nil || len(l.all) == 0 {
			return got
		}
		select {
		case <-l.another:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return nil
		case <-closing.Done():
			return nil
		}
	}
}
