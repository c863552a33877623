package firn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

const (
	connectsMax   = 16
	attemptsKept  = 32
	roundsMax     = 100
	overloadPause = 10 * time.Millisecond
)

// call is the failover of one call. It tries each server once, and sends at most AttemptsMax requests.
// A refusal that another server would repeat ends it. If all reachable servers are overloaded, it
// waits for the shortest advised time and starts again, if the deadline permits. If no server is left,
// or all are unreachable, silent or draining, it waits for news of servers, or for the time of an
// attempt, and tries all of them once more. No attempt starts at or after the
// deadline. A server that answers other calls but not this one keeps the request: the call asks the next server, and
// takes whichever answer comes first.
type call struct {
	engine   *engine
	ask      *ask
	until    time.Time
	attempts []Attempt // the last attemptsKept
	dropped  int       // earlier attempts
	last     *failure
	began    time.Time // the last attempt
	sent     int
	alone    bool // no server could be asked
	paid     bool // the next request uses the retry budget
	rounds   int  // rounds that ended because all servers were overloaded
	late     lateAnswers

	tried                       map[*server]bool // in this round, as all below
	unreached, overloaded, lost int
	advice                      time.Duration
}

func (c *call) beginRound() {
	c.tried = nil
	c.unreached, c.overloaded, c.lost, c.advice = 0, 0, 0, 0
}

func (c *call) run(ctx context.Context) (*answer, error) {
	c.beginRound()
	c.engine.fleet.callBegins()
	waited := false
	for {
		if why := c.over(ctx); why != "" {
			return nil, c.failure(ctx, why)
		}
		var server *server
		if c.sent < c.engine.options.AttemptsMax {
			server = c.engine.fleet.pick(c.ask.tag, c.tried)
			if server == nil && waited {
				c.beginRound()
				server = c.engine.fleet.pick(c.ask.tag, c.tried)
			}
		}
		waited = false
		if server == nil {
			why := ""
			if waited, why = c.wait(ctx); why != "" {
				return c.stall(ctx, why)
			}
			continue
		}
		if c.paid && !c.engine.fleet.takeRetry() {
			c.engine.fleet.giveBack(server)
			return c.stall(ctx, "the retry budget is exhausted")
		}
		got, problem := c.askOne(ctx, server)
		if problem == nil {
			return got, nil
		}
		if problem.paused {
			continue
		}
		if c.heed(server, problem) {
			return nil, &Error{Kind: Refused, Sentence: problem.detail, Reason: problem.reason,
				RetryAfter: problem.retryAfter, Attempts: c.attempts}
		}
		if c.engine.options.Failfast {
			return nil, c.failure(ctx, "the first server failed")
		}
	}
}

// stall fails, unless a server that is late still answers.
func (c *call) stall(ctx context.Context, why string) (*answer, error) {
	if got := c.late.awaitAny(ctx, c.engine.ctx, c.until); got != nil {
		return got, nil
	}
	return nil, c.failure(ctx, why)
}

// askOne asks the server; it tries again on a new connection if an idle one turns out to be closed.
func (c *call) askOne(ctx context.Context, server *server) (*answer, *failure) {
	defer c.engine.fleet.giveBack(server)
	got, problem := c.timed(ctx, server, false)
	if problem != nil && problem.stale && time.Now().Before(c.until) {
		got, problem = c.timed(ctx, server, true)
	}
	return got, problem
}

func (c *call) timed(ctx context.Context, server *server, fresh bool) (*answer, *failure) {
	began := time.Now()
	c.began = began
	got, problem := c.engine.attempt(ctx, server, c.ask, fresh, c.until, c.tried, &c.late)
	if problem == nil || !problem.paused {
		c.engine.fleet.counts.attempted(problem)
	}
	if problem == nil {
		// A late answer does not make up for its timeout: a server that is always late is ejected.
		if !got.late {
			c.engine.fleet.answered(server, c.ask.tag, false, began)
		}
		return got, nil
	}
	if problem.paused {
		return nil, problem
	}
	took := time.Since(began)
	if len(c.attempts) == attemptsKept {
		c.attempts = c.attempts[:copy(c.attempts, c.attempts[1:])]
		c.dropped++
	}
	c.attempts = append(c.attempts,
		Attempt{server.address, problem.end, problem.reason, took, problem.detail})
	if ctx.Err() == nil {
		c.engine.fleet.failed(server, c.ask.tag, problem)
	}
	return nil, problem
}

// heed records the outcome of an attempt, and returns whether it ends the call.
func (c *call) heed(one *server, problem *failure) bool {
	c.last = problem
	retry := refusalRules[problem.reason].retry
	if problem.end == WasRefused && retry != elsewhere && !(retry == ifSaid && problem.anotherMayHelp) {
		return true
	}
	if c.tried == nil {
		c.tried = map[*server]bool{}
	}
	c.tried[one] = true
	c.paid = !problem.unsent() && !(problem.end == Timeout && c.engine.fleet.mayMove(one, c.began))
	if problem.unsent() {
		c.unreached++
	} else {
		c.sent++
	}
	silent := problem.end == Timeout || problem.end == ConnClosed
	if silent || problem.unsent() || problem.reason == Draining {
		c.lost++
	}
	if problem.reason == Overloaded {
		advice := clamp(problem.retryAfter, overloadPause, math.MaxInt64)
		if c.overloaded == 0 || advice < c.advice {
			c.advice = advice
		}
		c.overloaded++
	}
	return false
}

// wait waits for an event that may help. It returns whether that was news of servers, or why it does not wait.
func (c *call) wait(ctx context.Context) (news bool, why string) {
	if at := c.engine.fleet.pausedUntil(c.tried); !at.IsZero() && c.sent < c.engine.options.AttemptsMax {
		if at.After(c.until) {
			at = c.until
		}
		c.engine.sleep(ctx, time.Until(at), c.engine.fleet.newsChannel())
		return false, ""
	}
	c.alone = c.alone || len(c.tried) == 0
	if c.overloaded > 0 && c.overloaded+c.unreached == len(c.tried) {
		room := time.Until(c.until) - c.advice
		if c.rounds++; room <= 0 || c.rounds == roundsMax {
			return false, "all servers are overloaded"
		}
		// Adds up to half of the time at random, so that clients do not return together.
		c.engine.sleep(ctx, c.advice+time.Duration(rand.Int64N(int64(clamp(c.advice, 0, room))/2+1)), nil)
		c.sent = 0
		c.beginRound()
		return false, ""
	}
	lost := c.lost == len(c.tried) && c.engine.fleet.listsChange
	if !(len(c.tried) == 0 || lost) || c.sent >= c.engine.options.AttemptsMax {
		return false, "no other server is left to ask"
	}
	pause := time.Until(c.until)
	if limit := c.engine.options.AttemptLimit; limit < pause {
		pause = limit
	}
	c.engine.sleep(ctx, pause, c.engine.fleet.newsChannel())
	return true, ""
}

func (c *call) over(ctx context.Context) string {
	switch {
	case c.engine.ctx.Err() != nil:
		return "the client was closed"
	case ctx.Err() != nil:
		return ctx.Err().Error()
	case !time.Now().Before(c.until):
		return "the deadline has passed"
	case c.unreached >= connectsMax:
		return "too many servers are out of reach"
	}
	return ""
}

func (c *call) failure(ctx context.Context, why string) error {
	told := &Error{Kind: Unavailable, Sentence: why, Attempts: c.attempts, cause: ctx.Err()}
	if c.dropped > 0 {
		told.Sentence += fmt.Sprintf("; the last %d of %d attempts:", attemptsKept, attemptsKept+c.dropped)
	}
	if told.cause == nil && !time.Now().Before(c.until) {
		told.cause = context.DeadlineExceeded // the context's own timer may fire a moment later
	}
	if c.alone && len(c.attempts) == 0 && ctx.Err() == nil {
		told.Sentence = "no provider: no usable server is known"
		c.engine.fleet.tell("no server", "", told.Sentence)
	}
	if c.last != nil {
		told.Reason, told.RetryAfter = c.last.reason, c.last.retryAfter
	}
	return told
}
