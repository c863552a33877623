package firn

import (
	"context"
	"time"
)

// MachineLease keeps a lease of a machine id for a generator of another library, which takes only a number.
//
// An id of that generator is unique only if its time is in the interval of the lease under whose machine id it was
// made. A process can be paused at any moment, so compare each id after it was made, and drop those that are outside.
// Stopping the generator before Until is not enough.
type MachineLease struct {
	generator *LocalGenerator
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
	return &MachineLease{generator}, nil
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
