package firn

import (
	"context"
	"fmt"
	"strings"
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
// list://host:port,host:port, which names all of them. It does not wait for a server. It fails only for
// invalid options, with an *Error that names every fault.
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
	return &Client{newEngine(options, seeds, listsChange)}, nil
}

// NextID returns one id; from memory, if Options.LocalRanges names the tag.
func (c *Client) NextID(ctx context.Context, tag string) (int64, error) {
	supply := c.engine.supplies[tag]
	if supply != nil && !c.engine.closed.Load() {
		if id, found := supply.takeNow(); found {
			return id, nil
		}
	}
	until := c.engine.deadlineOf(ctx)
	if supply != nil && !c.engine.closed.Load() {
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
// memory, if Options.LocalRanges names the tag and so many are there.
func (c *Client) NextIDs(ctx context.Context, tag string, count int) ([]int64, error) {
	if count < 1 || count > countMax {
		return nil, &Error{Kind: Refused, Reason: BadRequest,
			Sentence: fmt.Sprintf("count is %d; it must be 1 to %d", count, countMax)}
	}
	if supply := c.engine.supplies[tag]; supply != nil && !c.engine.closed.Load() {
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

// Close does not wait: calls in progress end with the kind Closed, and so do later ones.
func (c *Client) Close() { c.engine.close() }

func (c *Client) call(ctx context.Context, a *ask, until time.Time) (*answer, error) {
	if len(a.tag) > tagMax {
		return nil, &Error{Kind: Refused, Reason: BadRequest,
			Sentence: fmt.Sprintf("a tag has at most %d bytes", tagMax)}
	}
	if c.engine.closed.Load() {
		return nil, &Error{Kind: Closed, Sentence: "the client was closed"}
	}
	return c.engine.call(ctx, a, until)
}
