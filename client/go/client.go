// Package firn takes ids from a cluster of Firn servers.
//
//	client, err := firn.New("firn://10.0.0.7:7609,10.0.0.8:7609", firn.Options{})
//	id, err := client.NextID(ctx, "order")
//
// Ids have 64 bits and are never issued twice. A tag, such as "order", is the name under which a program
// requests ids; an empty tag is the servers' default.
//
// # Failures
//
// A call ends by the deadline of its context, or after [Options.Deadline] if the context has none. It tries up to
// [Options.AttemptsMax] servers, for at most [Options.AttemptLimit] each. If a server does not respond, is overloaded
// or cannot issue now, the call fails over to the next one. A retry is safe: the ids of a lost answer are never issued
// again. A call that fails returns an [*Error], which lists every attempt. Its Unwrap lets errors.Is find
// context.Canceled and context.DeadlineExceeded.
//
// # Prefetched ids
//
// [Options.LocalRanges] names tags whose ids are fetched before they are needed, so that [Client.NextID] costs a memory
// access. Ids in memory when the program ends are lost; they are never issued again.
//
// # Local ids
//
// A [LocalGenerator] makes ids in the program, under a machine id that a server leases to it. It continues while every
// server is unreachable, until the interval of the lease ends. A [MachineLease] is for the generator of another library.
//
// # Metrics
//
// [Client.Counters] returns what a client has done. The package firnvars publishes it with expvar.
package firn

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

const (
	tagMax   = 128 // bytes
	countMax = 100_000
)

// Client takes ids from a cluster. Use one for all goroutines, as long as the program runs. A call ends
// by the deadline of its context, or after Options.Deadline if the context has none, with ids or with
// an *Error that lists every attempt.
type Client struct {
	engine *engine
}

// New creates a client of firn://seed,seed, which discovers all servers through any of these, or of
// list://host:port,host:port, which names all of them. An address can be unix:/path, the Unix socket of a
// server on this host. New does not wait for a server. It fails only for invalid options, with an *Error
// that names every fault.
func New(servers string, options Options) (*Client, error) {
	options = options.withDefaults()
	faults := options.faults()
	seeds, listsChange, fault := readServers(servers)
	if fault != nil {
		faults = append(faults, fault.Error())
	}
	if len(faults) > 0 {
		return nil, &Error{Kind: Invalid, Sentence: strings.Join(faults, "; ")}
	}
	e := newEngine(newFleet(options, seeds, listsChange))
	for _, tag := range options.LocalRanges {
		e.supplies[tag.Tag] = newSupply(tag, e)
	}
	return &Client{e}, nil
}

// NextID returns one id; from memory, if Options.LocalRanges names the tag.
func (c *Client) NextID(ctx context.Context, tag string) (int64, error) {
	supply := c.engine.supplies[tag]
	if supply != nil && !c.engine.fleet.closed.Load() {
		if id, found := supply.takeNow(); found {
			return id, nil
		}
	}
	until := c.engine.deadlineOf(ctx)
	if supply != nil && !c.engine.fleet.closed.Load() {
		if id, found := supply.take(time.Until(until) / 4); found {
			return id, nil
		}
	}
	got, fault := c.call(ctx, askID(tag), until)
	if fault != nil {
		return 0, fault
	}
	return got.ids[0], nil
}

// NextIDs returns exactly `count` ids, 1 to 100000; in ascending order, unless the tag is obfuscated. They are from
// memory, if Options.LocalRanges names the tag and memory has enough.
func (c *Client) NextIDs(ctx context.Context, tag string, count int) ([]int64, error) {
	if count < 1 || count > countMax {
		return nil, &Error{Kind: Refused, Reason: BadRequest,
			Sentence: fmt.Sprintf("count is %d; it must be 1 to %d", count, countMax)}
	}
	if supply := c.engine.supplies[tag]; supply != nil && !c.engine.fleet.closed.Load() {
		if ids := supply.takeMany(count); ids != nil {
			return ids, nil
		}
	}
	got, fault := c.call(ctx, askIDs(tag, count), c.engine.deadlineOf(ctx))
	if fault != nil {
		return nil, fault
	}
	return got.ids, nil
}

// NextText returns one id in the text form of its tag.
func (c *Client) NextText(ctx context.Context, tag string) (string, error) {
	got, fault := c.call(ctx, askText(tag), c.engine.deadlineOf(ctx))
	if fault != nil {
		return "", fault
	}
	return got.text, nil
}

// Servers returns the servers as this client sees them, in the order of their addresses.
func (c *Client) Servers() []SeenServer { return c.engine.fleet.view() }

// Close does not wait: calls in progress end with the kind Closed, and so do later ones. Generators continue. It returns
// nil, for io.Closer.
func (c *Client) Close() error {
	c.engine.fleet.closed.Store(true)
	c.engine.end()
	return nil
}

func (c *Client) call(ctx context.Context, a *ask, until time.Time) (*answer, error) {
	if len(a.tag) > tagMax {
		return nil, &Error{Kind: Refused, Reason: BadRequest,
			Sentence: fmt.Sprintf("a tag has at most %d bytes", tagMax)}
	}
	if c.engine.fleet.closed.Load() {
		return nil, &Error{Kind: Closed, Sentence: "the client was closed"}
	}
	return c.engine.call(ctx, a, until)
}

// Counters is what a client has done since it was created. Each number only grows.
type Counters struct {
	Calls          int64 `json:"calls"`            // calls to servers; ids from memory are not among them
	Failed         int64 `json:"calls_failed"`     // calls that failed without a refusal
	Refused        int64 `json:"calls_refused"`    // calls that a server refused
	Attempts       int64 `json:"attempts"`         // attempts at servers
	Retries        int64 `json:"retries"`          // requests that used the retry budget
	RetriesDenied  int64 `json:"retries_denied"`   // retries that the exhausted retry budget prevented
	Timeouts       int64 `json:"attempt_timeouts"` // attempts without an answer in time
	Broken         int64 `json:"invalid_answers"`  // invalid answers
	Connects       int64 `json:"connects"`         // connections that were begun
	ConnectsFailed int64 `json:"connects_failed"`  // connections that failed before the server's status arrived
	Lists          int64 `json:"lists"`            // server lists that were accepted
	LocalIDs       int64 `json:"local_ids"`        // ids that goroutines took from memory, in pieces
	LocalIDsMissed int64 `json:"local_ids_missed"` // how often no id was in memory although the tag is prefetched
}

// counts are the counters while they change.
type counts struct {
	calls, failed, refused, attempts, retries, retriesDenied, timeouts, broken atomic.Int64
	connects, connectsFailed, lists, local, localMissed                        atomic.Int64
}

// Counters returns what this client has done.
func (c *Client) Counters() Counters {
	now := &c.engine.fleet.counts
	return Counters{Calls: now.calls.Load(), Failed: now.failed.Load(), Refused: now.refused.Load(),
		Attempts: now.attempts.Load(), Retries: now.retries.Load(), RetriesDenied: now.retriesDenied.Load(),
		Timeouts: now.timeouts.Load(), Broken: now.broken.Load(), Connects: now.connects.Load(),
		ConnectsFailed: now.connectsFailed.Load(), Lists: now.lists.Load(), LocalIDs: now.local.Load(),
		LocalIDsMissed: now.localMissed.Load()}
}

// attempted counts an attempt by its end.
func (c *counts) attempted(problem *failure) {
	c.attempts.Add(1)
	if problem == nil {
		return
	}
	switch problem.end {
	case Timeout, ConnectTimeout:
		c.timeouts.Add(1)
	case Broken, WrongService:
		c.broken.Add(1)
	}
}
