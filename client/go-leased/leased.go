// Package leased gives generators of other libraries a machine id that a Firn server leases to the program.
//
//	lease, err := firn.NewMachineLease(ctx, client, firn.LeaseOptions{Name: "checkout-7f9c"})
//	node, err := leased.NewSnowflake(lease)
//	id, err := node.Generate()
//
// Each id is compared with the lease after it was made, so a process that was paused beyond the interval returns no id
// of it.
package leased

import (
	"fmt"
	"time"

	firn "firn.example/firn/client/go"
)

const behindMax = time.Second

// MachineIDs is a *firn.MachineLease. A lease is for one generator: a second one fails.
type MachineIDs interface {
	Current() (firn.Lease, error)
	HandOut() error
}

// guard decides which ids of a generator may be returned. Its owner locks it.
type guard struct {
	lease MachineIDs
	held  firn.Lease
	floor time.Time // ids of an earlier generator are below
	last  time.Time
	ahead bool // the generator's clock was beyond the lease; it does not go back
}

// renew reads the lease. It returns whether a new generator is needed: the lease is another one, or the generator's
// clock was beyond it.
func (g *guard) renew() (another bool, fault error) {
	held, fault := g.lease.Current()
	if fault != nil {
		return false, fault
	}
	another = g.ahead || held.MachineID != g.held.MachineID || !held.From.Equal(g.held.From)
	g.ahead = false
	if g.held = held; another {
		g.floor = g.last
	}
	return another, nil
}

// permit returns nil if an id that covers this time may be returned. A wait means that a later id may be.
func (g *guard) permit(from, until time.Time) (wait time.Duration, fault error) {
	if until.After(g.held.Until) {
		g.ahead = true
		return 0, &firn.Error{Kind: firn.NoLease, Since: g.held.Until, Sentence: fmt.Sprintf(
			"the generator's clock is at the end of the lease of machine id %d, at %s", g.held.MachineID,
			g.held.Until.UTC().Format(time.RFC3339))}
	}
	first := g.held.From
	if first.Before(g.floor) {
		first = g.floor
	}
	if behind := first.Sub(from); behind > behindMax {
		return 0, &firn.Error{Kind: firn.NoLease, Since: from, Sentence: fmt.Sprintf(
			"the generator's clock is %s behind the lease of machine id %d; correct the clock", behind, g.held.MachineID)}
	} else if behind > 0 {
		return behind, nil
	}
	g.last = until
	return 0, nil
}
