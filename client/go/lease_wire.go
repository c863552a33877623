package firn

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// Leases of machine ids in firn.thrift.

var (
	methodLease      = &method{"lease", typeStruct, func(r *reader, a *answer) { a.terms = r.leaseTerms() }}
	methodRenewLease = &method{"renewLease", typeStruct, func(r *reader, a *answer) { a.terms = r.leaseTerms() }}
	// Void: an empty result is success.
	methodReleaseLease = &method{"releaseLease", typeStop, nil}
)

// leaseFault says why a server does not grant, extend or end a lease. The numbers are those of firn.thrift.
type leaseFault int32

const (
	leaseOther          leaseFault = -1 // absent, or of a later version
	leaseUnknown        leaseFault = 1  // the server has no such lease
	leaseOutdated       leaseFault = 2  // a repetition that came after a later request
	leaseRevoked        leaseFault = 3  // stop issuing at once
	leaseAnotherServers leaseFault = 4  // it belongs to another server
	leaseNone           leaseFault = 5  // the server grants none
)

// leaseAsk is the argument of all methods about leases; each uses its own fields. Those after the comment are absent
// where they are nil.
type leaseAsk struct {
	token, name               string // of lease
	lease, turn, acknowledged string // of renewLease and releaseLease
	clockMs                   int64  // of lease and renewLease
	// Optional.
	aheadMs  *int32
	rack     *int32
	usedTick *int64
}

func (l *leaseAsk) appendFields(out []byte, of *method) []byte {
	number := uint16(0)
	text := func(value string) {
		number++
		out = appendString(appendField(out, typeString, number), value)
	}
	i32 := func(value *int32) {
		if number++; value != nil {
			out = binary.BigEndian.AppendUint32(appendField(out, typeI32, number), uint32(*value))
		}
	}
	i64 := func(value *int64) {
		if number++; value != nil {
			out = binary.BigEndian.AppendUint64(appendField(out, typeI64, number), uint64(*value))
		}
	}
	switch of {
	case methodLease:
		text(l.token)
		text(l.name)
		i64(&l.clockMs)
		i32(l.aheadMs)
		i32(l.rack)
	case methodRenewLease:
		text(l.lease)
		text(l.turn)
		text(l.acknowledged)
		i64(&l.clockMs)
		i32(l.aheadMs)
	default:
		text(l.lease)
		text(l.turn)
		i64(l.usedTick)
	}
	return append(out, typeStop)
}

// leaseTerms is a lease, as the server sent it. The program may issue the ids
// baseBits | tick << tickShift | sequence << sequenceShift
// for each tick in [fromTick, untilTick) and each sequence in [sequenceFrom, sequenceFrom + sequenceCount).
type leaseTerms struct {
	lease                                  string // secret
	number                                 int64
	machine, worker, rack                  int32
	baseBits                               int64
	tickShift, sequenceShift, sequenceBits int32
	sequenceFrom, sequenceCount            int64
	tickMs                                 int32
	epochMs, fromTick, untilTick           int64
	renewInMs                              int32
	ending                                 bool   // it is extended no further
	server                                 string // address of the server that has the lease
}

func (r *reader) leaseTerms() *leaseTerms {
	t := &leaseTerms{}
	i32 := map[int16]*int32{3: &t.machine, 4: &t.worker, 5: &t.rack, 7: &t.tickShift, 8: &t.sequenceShift,
		9: &t.sequenceBits, 12: &t.tickMs, 16: &t.renewInMs}
	i64 := map[int16]*int64{2: &t.number, 6: &t.baseBits, 10: &t.sequenceFrom, 11: &t.sequenceCount, 13: &t.epochMs,
		14: &t.fromTick, 15: &t.untilTick}
	r.fields(func(number int16, kind byte) bool {
		switch {
		case kind == typeString && number == 1:
			t.lease = string(r.bytes())
		case kind == typeString && number == 18:
			t.server = string(r.bytes())
		case kind == typeBool && number == 17:
			t.ending = r.bool()
		case kind == typeI32 && i32[number] != nil:
			*i32[number] = r.i32()
		case kind == typeI64 && i64[number] != nil:
			*i64[number] = r.i64()
		default:
			return false
		}
		return true
	})
	return t
}

func (r *reader) leaseRefusal() *failure {
	problem := &failure{end: WasRefused, leaseFault: leaseOther}
	r.fields(func(number int16, kind byte) bool {
		switch {
		case number == 1 && kind == typeI32:
			problem.leaseFault = leaseFault(r.i32())
		case number == 2 && kind == typeString:
			problem.detail = printable(r.text())
		case number == 3 && kind == typeString:
			problem.leaseServer = printable(r.text())
		default:
			return false
		}
		return true
	})
	if problem.leaseFault < leaseUnknown || problem.leaseFault > leaseNone {
		problem.leaseFault = leaseOther
	}
	return problem
}

// faultOfTexts returns a sentence if no server sends such texts.
func (t *leaseTerms) faultOfTexts() string {
	for _, one := range t.lease + t.server {
		if one < ' ' || one > '~' {
			return "its lease has a character that no lease has"
		}
	}
	return ""
}

const (
	tickMsMax   = 5_000
	leaseIDBits = 63 // an id is not negative, except in layouts with a constant sign in baseBits
	unixMsMax   = 1 << 53
)

// fault returns why no id may be issued under these terms, or an empty text.
func (t *leaseTerms) fault() string {
	if t.lease == "" || t.tickMs < 1 || t.tickMs > tickMsMax {
		return "a lease without an id, or with ticks of an unknown length"
	}
	if _, _, fault := splitAddress(t.server); fault != nil {
		return "its server: " + fault.Error()
	}
	if t.fromTick < 0 || t.fromTick >= t.untilTick || t.untilTick > unixMsMax/int64(t.tickMs) ||
		t.epochMs < -unixMsMax || t.epochMs > unixMsMax {
		return fmt.Sprintf("ticks from %d to %d", t.fromTick, t.untilTick)
	}
	width := int32(bits.Len64(uint64(t.untilTick - 1)))
	for _, field := range [][2]int32{{t.tickShift, width}, {t.sequenceShift, t.sequenceBits}} {
		if field[0] < 0 || field[1] < 0 || field[0] > leaseIDBits || field[1] > leaseIDBits-field[0] {
			return "a tick or a sequence outside an id's bits"
		}
	}
	time := (uint64(1)<<width - 1) << t.tickShift
	sequence := (uint64(1)<<t.sequenceBits - 1) << t.sequenceShift
	if time&sequence != 0 || uint64(t.baseBits)&(time|sequence) != 0 {
		return "fields that overlap"
	}
	if all := int64(1) << t.sequenceBits; t.sequenceFrom < 0 || t.sequenceCount < 1 || t.sequenceFrom >= all ||
		t.sequenceCount > all-t.sequenceFrom {
		return fmt.Sprintf("%d sequences from %d", t.sequenceCount, t.sequenceFrom)
	}
	return ""
}

// faultOfRenewal returns why these terms cannot be those of a renewal, or an empty text.
func (t *leaseTerms) faultOfRenewal(before *leaseTerms) string {
	one, other := *t, *before
	for _, terms := range []*leaseTerms{&one, &other} {
		terms.untilTick, terms.renewInMs, terms.ending, terms.server = 0, 0, false, ""
	}
	if t.untilTick < before.untilTick || one != other {
		return "a renewal was answered with the terms of another lease"
	}
	return t.fault()
}

func (t *leaseTerms) sameLayout(other *leaseTerms) bool {
	return t.tickMs == other.tickMs && t.epochMs == other.epochMs && t.tickShift == other.tickShift &&
		t.sequenceShift == other.sequenceShift && t.sequenceBits == other.sequenceBits
}

// start returns when a tick begins.
func (t *leaseTerms) start(tick int64) time.Time {
	return time.UnixMilli(t.epochMs + tick*int64(t.tickMs))
}

// faultOfLeaseName returns why this cannot be the name of a lease, or an empty text. Servers check the same.
func faultOfLeaseName(name string) string {
	marks := "-_.:/@"
	bad := strings.IndexFunc(name, func(one rune) bool {
		return !(one >= 'a' && one <= 'z' || one >= 'A' && one <= 'Z' || one >= '0' && one <= '9' ||
			strings.ContainsRune(marks, one))
	})
	if name == "" || len(name) > 64 || bad >= 0 {
		return fmt.Sprintf("name is '%s'; it must have 1 to 64 letters, digits or characters of %s", printable(name), marks)
	}
	return ""
}
