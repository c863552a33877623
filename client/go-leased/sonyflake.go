package leased

import (
	"sync"
	"time"

	"github.com/sony/sonyflake"

	firn "firn.example/firn/client/go"
)

const sonyTick = 10 * time.Millisecond

// Sonyflake generates ids as a *sonyflake.Sonyflake does, under a leased machine id. Use one for all goroutines.
//
// Its ids have sonyflake's own layout. They differ from those of other programs that use this type and the same
// StartTime, and not from those of Firn's servers.
type Sonyflake struct {
	mutex     sync.Mutex
	guard     guard
	settings  sonyflake.Settings
	start     time.Time
	generator *sonyflake.Sonyflake
}

// NewSonyflake replaces the machine id of the settings. It fails for a StartTime in the future.
func NewSonyflake(lease MachineIDs, settings sonyflake.Settings) (*Sonyflake, error) {
	s := &Sonyflake{guard: guard{lease: lease}, settings: settings, start: settings.StartTime}
	if s.start.IsZero() {
		s.start = time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC) // the library's
	}
	s.start = time.Unix(0, s.start.UnixNano()/int64(sonyTick)*int64(sonyTick))
	s.settings.MachineID = func() (uint16, error) {
		if number := s.guard.held.MachineID; number < 1<<sonyflake.BitLenMachineID {
			return uint16(number), nil
		}
		return 0, sonyflake.ErrInvalidMachineID
	}
	if fault := s.prepare(); fault != nil {
		return nil, fault
	}
	if fault := lease.HandOut(); fault != nil {
		return nil, fault
	}
	return s, nil
}

// prepare makes the generator of the lease in force.
func (s *Sonyflake) prepare() error {
	another, fault := s.guard.renew()
	if fault != nil || !(another || s.generator == nil) {
		return fault
	}
	s.generator, fault = sonyflake.New(s.settings)
	return fault
}

// NextID returns the next id. The error is an *firn.Error of the kind NoLease or Closed, or sonyflake's.
func (s *Sonyflake) NextID() (uint64, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for {
		if fault := s.prepare(); fault != nil {
			return 0, fault
		}
		id, fault := s.generator.NextID()
		if fault != nil {
			return 0, fault
		}
		// Two leases can share a tick of 10 ms: the whole tick must be in the interval.
		at := s.start.Add(sonyflake.ElapsedTime(id))
		wait, fault := s.guard.permit(at, at.Add(sonyTick))
		if fault != nil {
			return 0, fault
		}
		if wait == 0 {
			return id, nil
		}
		time.Sleep(wait)
	}
}

var _ MachineIDs = (*firn.MachineLease)(nil)
