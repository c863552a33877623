package firn

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	leaseAttempt   = 2 * time.Second // a claim needs several answers of the registry
	leaseOpening   = 10 * time.Second
	leaseCloseWait = time.Second
	leaseAhead     = time.Minute
	leaseAheadMin  = 2 * time.Second
	leaseAheadMax  = 24 * time.Hour
)

// LeaseOptions are the options of a LocalGenerator.
type LeaseOptions struct {
	Name string // shown to operators: 1 to 64 letters, digits or characters of -_.:/@
	// Ahead is how far ahead of now the interval ends after a renewal: 2 s to 24 h. 0: a minute. A server gives at most its
	// --claim_window_ms. A generator survives an outage of all servers for two thirds of the interval.
	Ahead time.Duration
	Rack  *int32 // of the machine id; nil: any
	// OnLost is called when a lease was lost, on a goroutine of its own, one loss at a time, until Close. Its panics are
	// ignored.
	OnLost func(LeaseLoss)
}

// LeaseLoss is a lease that a generator has lost. Until the next one, Next fails with NoLease.
type LeaseLoss struct {
	Kind      LossKind
	MachineID int
	Reason    string // a sentence
}

// LossKind is how a lease was lost.
type LossKind string

const (
	// Revoked: a server ended it, because another process may have its ids.
	Revoked LossKind = "revoked"
	// Expired: its interval ended before a server extended it.
	Expired LossKind = "expired"
)

// LocalGenerator makes ids in this process, under a machine id that no other process has at the same time.
//
// An id costs no call, also while no server is reachable, until the interval of the lease ends. A goroutine extends
// the lease, and obtains the next one when its server does not. Ids rise, also across leases. They are plain snowflake
// ids, outside every tag. It is safe to use from any number of goroutines.
type LocalGenerator struct {
	ids    *leasedIDs
	lessee *lessee // of the goroutine
	engine *engine

	ctx       context.Context // of requests; ends with Close
	stop      context.CancelFunc
	leased    chan struct{} // closed after the first lease
	ended     chan struct{} // closed by the goroutine
	firstTime sync.Once
	hooks     hooks

	kept   *connection // of the goroutine: to the server that answered last with a lease; nil: none
	keptAt string
}

// NewLocalGenerator waits for the first lease, until the context ends, or for 10 s if it has no deadline. If no server
// grants a lease, it returns an *Error of the kind NoLease. The generator shares the client's servers, and keeps a
// connection of its own to the server of its lease. Close must be called.
func NewLocalGenerator(ctx context.Context, client *Client, options LeaseOptions) (*LocalGenerator, error) {
	return openLocalGenerator(ctx, client, options, false)
}

func openLocalGenerator(ctx context.Context, client *Client, options LeaseOptions,
	foreign bool) (*LocalGenerator, error) {
	if options.Ahead == 0 {
		options.Ahead = leaseAhead
	}
	fault := faultOfLeaseName(options.Name)
	if options.Ahead < leaseAheadMin || options.Ahead > leaseAheadMax {
		fault = fmt.Sprintf("Ahead is %s; it must be %s to %s", options.Ahead, leaseAheadMin, leaseAheadMax)
	}
	if fault != "" {
		return nil, &Error{Kind: Invalid, Sentence: fault}
	}
	if client.engine.fleet.closed.Load() {
		return nil, &Error{Kind: Closed, Sentence: "the client was closed"}
	}
	g := newLocalGenerator(client, options)
	g.lessee.foreign = foreign
	go g.run()
	if _, has := ctx.Deadline(); !has {
		limited, cancel := context.WithTimeout(ctx, leaseOpening)
		defer cancel()
		ctx = limited
	}
	select {
	case <-g.leased:
		return g, nil
	case <-ctx.Done():
	}
	_, why := g.ids.held()
	if why == nil {
		return g, nil // the lease came at the last moment
	}
	g.Close()
	var told *Error
	if errors.As(why, &told) {
		told.cause = ctx.Err()
	}
	return nil, why
}

func newLocalGenerator(client *Client, options LeaseOptions) *LocalGenerator {
	clock := systemLeaseClock()
	g := &LocalGenerator{ids: newLeasedIDs(clock), leased: make(chan struct{}), ended: make(chan struct{}),
		engine: newEngine(client.engine.fleet)}
	g.ctx, g.stop = context.WithCancel(context.Background())
	g.lessee = &lessee{name: options.Name, aheadMs: int32(options.Ahead.Milliseconds()), rack: options.Rack, ids: g.ids,
		clock: clock, pick: g.pick, listed: g.listed, draw: draw128, onLost: func(loss LeaseLoss) {
			if options.OnLost != nil {
				g.hooks.call(func() {
					if g.ctx.Err() == nil { // the program has not closed it meanwhile
						options.OnLost(loss)
					}
				})
			}
		}}
	return g
}

func draw128() string {
	drawn := make([]byte, 16)
	if _, fault := rand.Read(drawn); fault != nil {
		panic(fault) // the system has no random numbers
	}
	return hex.EncodeToString(drawn)
}

// Next returns the next id. If the sequence of this tick is used up, it waits for the next tick. The error is an *Error
// of the kind NoLease or Closed.
func (g *LocalGenerator) Next() (int64, error) { return g.ids.next() }

// MachineID returns the machine id of the current lease, and whether there is one.
func (g *LocalGenerator) MachineID() (machineID int, leased bool) {
	if terms := g.ids.current(); terms != nil {
		return int(terms.machine), true
	}
	return 0, false
}

// Until returns the time in ids at which the current lease ends, unless a server extends it; zero: there is none.
func (g *LocalGenerator) Until() time.Time {
	if terms := g.ids.current(); terms != nil {
		return terms.start(terms.untilTick)
	}
	return time.Time{}
}

// Close ends the generator, and reports to the server which ids were used. It waits for at most a second.
func (g *LocalGenerator) Close() {
	g.ids.close(Closed, "the generator was closed")
	g.stop()
	select {
	case <-g.ended:
	case <-time.After(leaseCloseWait):
	}
}

func (g *LocalGenerator) run() {
	defer close(g.ended)
	defer g.engine.end()
	for g.ctx.Err() == nil {
		if order := g.lessee.due(); order != nil {
			terms, problem := g.send(g.ctx, order)
			if g.ctx.Err() != nil {
				g.lessee.stop()
			}
			g.lessee.done(order, terms, problem)
			if g.ids.current() != nil {
				g.firstTime.Do(func() { close(g.leased) })
			}
			continue
		}
		g.engine.sleep(g.ctx, g.lessee.nextAt-g.lessee.clock.steady(), g.ids.jumps)
	}
	g.hangUp() // its context has ended
	g.lessee.stop()
	ctx, cancel := context.WithTimeout(context.Background(), leaseCloseWait)
	defer cancel()
	for !g.lessee.stopped() && ctx.Err() == nil {
		if order := g.lessee.due(); order != nil {
			terms, problem := g.send(ctx, order)
			g.lessee.done(order, terms, problem)
			continue
		}
		g.engine.sleep(ctx, g.lessee.nextAt-g.lessee.clock.steady(), nil)
	}
}

// --- servers -------------------------------------------------------------------------------------

func (g *LocalGenerator) pick(tried []string) string {
	fleet, not := g.engine.fleet, map[*server]bool{}
	fleet.mutex.Lock()
	for _, one := range fleet.servers {
		not[one] = slices.Contains(tried, one.address)
	}
	fleet.mutex.Unlock()
	one := fleet.pick("", not)
	if one == nil {
		return ""
	}
	fleet.giveBack(one)
	return one.address
}

func (g *LocalGenerator) listed(address string) bool {
	g.engine.fleet.mutex.Lock()
	defer g.engine.fleet.mutex.Unlock()
	return g.engine.fleet.servers[address] != nil
}

// send sends the request over a connection that no call uses: an answer may take seconds. The connection of the last
// lease is kept, so that its renewal needs no file descriptor and no DNS. It has half of the time: its path can be dead.
func (g *LocalGenerator) send(ctx context.Context, order *leaseOrder) (*leaseTerms, *failure) {
	until := time.Now().Add(order.limit)
	var earlier *failure
	if g.kept != nil && g.keptAt == order.address {
		got, problem := g.kept.ask(order.ask, time.Now().Add(order.limit/2))
		if problem == nil {
			return got.terms, nil
		}
		if problem.spoke() {
			return nil, problem
		}
		g.hangUp()
		if (problem.end != ConnClosed && problem.end != Timeout) || ctx.Err() != nil {
			return nil, problem
		}
		earlier = problem
	}
	made, problem := g.connect(ctx, order.address, until)
	if problem != nil {
		if earlier != nil && order.ask.method == methodLease {
			return nil, earlier // the server may have granted the lease
		}
		return nil, problem
	}
	got, problem := made.ask(order.ask, until)
	if problem != nil {
		made.hangUp()
		return nil, problem
	}
	if got.terms == nil { // of a release
		made.hangUp()
		return nil, nil
	}
	g.hangUp()
	g.kept, g.keptAt = made, order.address
	return got.terms, nil
}

func (g *LocalGenerator) connect(ctx context.Context, address string, until time.Time) (*connection, *failure) {
	fleet := g.engine.fleet
	fleet.mutex.Lock()
	one := fleet.servers[address]
	fleet.mutex.Unlock()
	if one == nil { // no list has it
		one = fleet.made(address)
	}
	made, _, problem := g.engine.connect(ctx, one, until)
	if problem != nil {
		fleet.failed(one, "", problem)
		return nil, problem
	}
	fleet.connected(one)
	return made, nil
}

// hangUp closes the kept connection.
func (g *LocalGenerator) hangUp() {
	if g.kept != nil {
		g.kept.hangUp()
		g.kept = nil
	}
}

// MachineLease keeps a lease of a machine id for a generator of another library, which takes only a number.
//
// An id of that generator is unique only if its time is in the interval of the lease under whose machine id it was
// made. A process can be paused at any moment, so compare each id after it was made, and drop those that are outside.
// Stopping the generator before Until is not enough.
type MachineLease struct {
	generator *LocalGenerator
	handedOut atomic.Bool
}

// Lease is a machine id and its interval.
type Lease struct {
	MachineID   int
	From, Until time.Time // the machine id is this process's for ids with a time in [From, Until)

	// The cluster's layout: an id is Base | tick << TickShift | sequence << SequenceShift. Ticks count from Epoch.
	Base                                   int64 // the machine id and constant fields, in place
	Epoch                                  time.Time
	Tick                                   time.Duration
	TickShift, SequenceShift, SequenceBits int
}

// NewMachineLease waits for a lease as NewLocalGenerator does. Close must be called.
func NewMachineLease(ctx context.Context, client *Client, options LeaseOptions) (*MachineLease, error) {
	generator, fault := openLocalGenerator(ctx, client, options, true)
	if fault != nil {
		return nil, fault
	}
	return &MachineLease{generator: generator}, nil
}

// HandOut gives the machine id to a generator. It succeeds once, because two generators with one machine id make equal
// ids. An adapter of another library calls it before it makes its generator.
func (m *MachineLease) HandOut() error {
	if m.handedOut.Swap(true) {
		return &Error{Kind: Invalid, Sentence: "this lease has a generator already, and a second one would repeat its ids; " +
			"share the generator, or take another lease"}
	}
	return nil
}

// Current returns the lease in force. Its Until is later after each renewal; its MachineID and From change when another
// lease replaces it. The error is an *Error of the kind NoLease or Closed.
func (m *MachineLease) Current() (Lease, error) {
	terms, why := m.generator.ids.held()
	if why != nil {
		return Lease{}, why
	}
	return Lease{MachineID: int(terms.machine), From: terms.start(terms.fromTick), Until: terms.start(terms.untilTick),
		Base: terms.baseBits, Epoch: time.UnixMilli(terms.epochMs), Tick: time.Duration(terms.tickMs) * time.Millisecond,
		TickShift: int(terms.tickShift), SequenceShift: int(terms.sequenceShift), SequenceBits: int(terms.sequenceBits)}, nil
}

// Close gives the lease back; the generator must have stopped. The machine id stays reserved to the end of the interval,
// because nothing is known about the ticks that were used.
func (m *MachineLease) Close() { m.generator.Close() }
