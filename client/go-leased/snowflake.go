package leased

import (
	"fmt"
	"sync"
	"time"

	"github.com/bwmarrin/snowflake"

	firn "firn.example/firn/client/go"
)

// Snowflake generates ids as a *snowflake.Node does, under a leased machine id. Use one for all goroutines.
type Snowflake struct {
	mutex sync.Mutex
	guard guard
	node  *snowflake.Node
}

// NewSnowflake fails unless the cluster's layout is that of the library's variables Epoch, NodeBits and StepBits:
// otherwise ids of servers and of the library could be equal.
func NewSnowflake(lease MachineIDs) (*Snowflake, error) {
	held, fault := lease.Current()
	if fault != nil {
		return nil, fault
	}
	if held.Tick != time.Millisecond || held.Epoch.UnixMilli() != snowflake.Epoch || held.SequenceShift != 0 ||
		held.SequenceBits != int(snowflake.StepBits) || held.TickShift != int(snowflake.NodeBits+snowflake.StepBits) ||
		held.Base != int64(held.MachineID)<<snowflake.StepBits {
		return nil, &firn.Error{Kind: firn.Invalid, Sentence: fmt.Sprintf("the cluster has another layout than snowflake: "+
			"its epoch is %d ms, its ticks begin at bit %d, its sequence has %d bits; set snowflake.Epoch, NodeBits and "+
			"StepBits before", held.Epoch.UnixMilli(), held.TickShift, held.SequenceBits)}
	}
	if fault := lease.HandOut(); fault != nil {
		return nil, fault
	}
	return &Snowflake{guard: guard{lease: lease}}, nil
}

// Generate returns the next id. The error is an *firn.Error of the kind NoLease or Closed.
func (s *Snowflake) Generate() (snowflake.ID, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for {
		another, fault := s.guard.renew()
		if fault != nil {
			return 0, fault
		}
		if another || s.node == nil {
			if s.node, fault = snowflake.NewNode(int64(s.guard.held.MachineID)); fault != nil {
				return 0, fault
			}
		}
		id := s.node.Generate()
		at := time.UnixMilli(id.Time())
		wait, fault := s.guard.permit(at, at.Add(time.Millisecond))
		if fault != nil {
			return 0, fault
		}
		if wait == 0 {
			return id, nil
		}
		time.Sleep(wait)
	}
}
