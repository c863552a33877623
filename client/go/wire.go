package firn

import (
	"bytes"
	"encoding/binary"
	"time"
)

// The calls of firn.thrift in Thrift's framed binary protocol.

const (
	frameMax      = 16 << 20
	version       = 0x80010000
	kindCall      = 1
	kindReply     = 2
	kindException = 3
	unknownMethod = 1 // of a TApplicationException
)

// serverState is the state of a server; the numbers are those of firn.thrift, and 0 is an absent state.
type serverState int32

const (
	stateNotReady serverState = iota + 1
	stateReady
	stateOffline
	stateDraining
)

// idRun is ids in compact form: first, first + stride, ...
type idRun struct {
	first  int64
	count  int32
	stride int64
}

type tagStatus struct {
	tag, strategy string
	asIssued      bool
}

// serverStatus is the part of a server's status that a client needs.
type serverStatus struct {
	clusterUUID, layout string
	state               serverState
	wallMs              int64
	tags                []tagStatus
}

type serverEntry struct {
	address      string
	rack, weight int32
	online, tls  bool
	state        serverState
}

type serverList struct {
	clusterUUID string
	version     int64
	servers     []serverEntry
	askAgainMs  int32
}

// appendRequest appends the frame of the request.
func (a *ask) appendRequest(out []byte, sequence int32) []byte {
	start := len(out)
	out = append(out, 0, 0, 0, 0)
	out = binary.BigEndian.AppendUint32(out, version|kindCall)
	out = appendString(out, a.method.name)
	out = binary.BigEndian.AppendUint32(out, uint32(sequence))
	switch a.method {
	case methodLease, methodRenewLease, methodReleaseLease:
		out = a.lease.appendFields(appendField(out, typeStruct, 1), a.method)
	case methodStatus:
	case methodServers:
		out = binary.BigEndian.AppendUint64(appendField(out, typeI64, 1), uint64(a.count))
	default:
		out = appendString(appendField(out, typeString, 1), a.tag)
		switch a.method {
		case methodIDs:
			out = binary.BigEndian.AppendUint32(appendField(out, typeI32, 2), uint32(a.count))
		case methodRuns:
			out = binary.BigEndian.AppendUint64(appendField(out, typeI64, 2), uint64(a.count))
		}
	}
	out = append(out, typeStop)
	binary.BigEndian.PutUint32(out[start:], uint32(len(out)-start-4))
	return out
}

// frameSize returns the size of the frame that begins with this length.
func frameSize(head []byte) (int, *failure) {
	size := binary.BigEndian.Uint32(head)
	if head[0] == 0x15 && head[1] == 3 {
		return 0, failed(Broken, "it speaks TLS")
	}
	if size == 0 || size > frameMax {
		return 0, failed(Broken, "it does not speak Thrift")
	}
	return int(size), nil
}

// idFrame is the answer to getId, without its length: its head, the sequence id, the field's head, the id, the end.
var idFrame = []byte("\x80\x01\x00\x02\x00\x00\x00\x05getId" + "\x00\x00\x00\x00" + "\x0a\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00")

// readID returns the id of the usual answer to getId. The reader reads all other answers.
func readID(frame []byte, sequence int32) (id int64, found bool) {
	const sequenceAt, fieldAt, idAt, endAt = 13, 17, 20, 28
	if len(frame) != len(idFrame) || frame[endAt] != typeStop ||
		!bytes.Equal(frame[:sequenceAt], idFrame[:sequenceAt]) || !bytes.Equal(frame[fieldAt:idAt], idFrame[fieldAt:idAt]) ||
		int32(binary.BigEndian.Uint32(frame[sequenceAt:])) != sequence {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(frame[idAt:])), true
}

// readAnswer reads the answer to the request from a frame without its length.
func (a *ask) readAnswer(frame []byte, sequence int32) (*answer, *failure) {
	if a.method == methodID {
		if id, found := readID(frame, sequence); found {
			return &answer{ids: []int64{id}}, nil
		}
	}
	r := &reader{rest: frame}
	head := uint32(r.i32())
	if r.fault == "" && head&0xffffff00 != version {
		r.fail("its protocol version is unknown")
	}
	kind, name, got := head&0xff, string(r.bytes()), r.i32()
	if r.fault == "" && ((kind != kindReply && kind != kindException) || got != sequence ||
		(kind == kindReply && name != a.method.name)) {
		return nil, failed(Broken, "its answer does not belong to the request")
	}
	if kind == kindException {
		return nil, r.whole(r.exception())
	}
	var found *answer
	var refusal *failure
	r.fields(func(number int16, kind byte) bool {
		switch {
		case number == 0 && kind == a.method.kind:
			found = &answer{}
			a.method.read(r, found)
		case number == 1 && kind == typeStruct:
			refusal = r.refusal()
		case number == 2 && kind == typeStruct:
			refusal = r.leaseRefusal()
		default:
			return false
		}
		return true
	})
	if refusal != nil || r.fault != "" {
		return nil, r.whole(refusal)
	}
	if a.method == methodReleaseLease {
		return &answer{}, nil // void
	}
	if found == nil {
		return nil, failed(Broken, "its answer holds neither ids nor a refusal")
	}
	if fault := a.faultOf(found); fault != "" {
		return nil, failed(Broken, fault)
	}
	return found, nil
}

// whole returns the problem that a frame contains, or that it is malformed.
func (r *reader) whole(problem *failure) *failure {
	if r.fault != "" {
		return failed(Broken, "its answer cannot be read: "+r.fault)
	}
	return problem
}

func (r *reader) exception() *failure {
	message, code := "", int32(0)
	r.fields(func(number int16, kind byte) bool {
		switch {
		case number == 1 && kind == typeString:
			message = r.text()
		case number == 2 && kind == typeI32:
			code = r.i32()
		default:
			return false
		}
		return true
	})
	if code != unknownMethod {
		return failed(Broken, "it failed: "+message)
	}
	problem := failed(WrongService, "it does not know the method: "+message)
	problem.lacksMethod = true
	return problem
}

func (r *reader) refusal() *failure {
	problem, reason, retryAfterMs := &failure{end: WasRefused}, int32(0), int32(0)
	r.fields(func(number int16, kind byte) bool {
		switch {
		case number == 1 && kind == typeI32:
			reason = r.i32()
		case number == 2 && kind == typeString:
			problem.detail = printable(r.text())
		case number == 3 && kind == typeI32:
			retryAfterMs = r.i32()
		case number == 4 && kind == typeBool:
			problem.anotherMayHelp = r.bool()
		default:
			return false
		}
		return true
	})
	if problem.reason = Reason(reason); problem.reason < BadRequest || problem.reason > Internal {
		problem.reason = Internal
	}
	problem.retryAfter = time.Duration(max(retryAfterMs, 0)) * time.Millisecond
	return problem
}

func (r *reader) ids() []int64 {
	ids := make([]int64, r.count(typeI64, 8))
	for i := range ids {
		ids[i] = r.i64()
	}
	return ids
}

// structs calls `read` for each element of a list of structs, which takes at least so many bytes.
func (r *reader) structs(least int, read func()) {
	for count := r.count(typeStruct, least); count > 0 && r.fault == ""; count-- {
		read()
	}
}

func (r *reader) runs() (runs []idRun) {
	r.structs(30, func() {
		run := idRun{}
		r.fields(func(number int16, kind byte) bool {
			switch {
			case number == 1 && kind == typeI64:
				run.first = r.i64()
			case number == 2 && kind == typeI32:
				run.count = r.i32()
			case number == 3 && kind == typeI64:
				run.stride = r.i64()
			default:
				return false
			}
			return true
		})
		runs = append(runs, run)
	})
	return runs
}

func (r *reader) status() *serverStatus {
	status := &serverStatus{}
	r.fields(func(number int16, kind byte) bool {
		switch {
		case number == 1 && kind == typeString:
			status.clusterUUID = r.text()
		case number == 5 && kind == typeString:
			status.layout = r.text()
		case number == 7 && kind == typeI32:
			status.state = serverState(r.i32())
		case number == 10 && kind == typeI64:
			status.wallMs = r.i64()
		case number == 14 && kind == typeList:
			r.structs(8, func() { status.tags = append(status.tags, r.tagStatus()) })
		default:
			return false
		}
		return true
	})
	return status
}

func (r *reader) tagStatus() (tag tagStatus) {
	r.fields(func(number int16, kind byte) bool {
		switch {
		case number == 1 && kind == typeString:
			tag.tag = r.text()
		case number == 2 && kind == typeString:
			tag.strategy = r.text()
		case number == 6 && kind == typeBool:
			tag.asIssued = r.bool()
		default:
			return false
		}
		return true
	})
	return tag
}

func (r *reader) list() *serverList {
	list := &serverList{}
	r.fields(func(number int16, kind byte) bool {
		switch {
		case number == 1 && kind == typeString:
			list.clusterUUID = r.text()
		case number == 3 && kind == typeI64:
			list.version = r.i64()
		case number == 4 && kind == typeList:
			r.structs(8, func() { list.servers = append(list.servers, r.entry()) })
		case number == 6 && kind == typeI32:
			list.askAgainMs = r.i32()
		default:
			return false
		}
		return true
	})
	return list
}

func (r *reader) entry() (entry serverEntry) {
	r.fields(func(number int16, kind byte) bool {
		switch {
		case number == 1 && kind == typeString:
			entry.address = r.text()
		case number == 2 && kind == typeI32:
			entry.rack = r.i32()
		case number == 3 && kind == typeI32:
			entry.weight = r.i32()
		case number == 4 && kind == typeBool:
			entry.online = r.bool()
		case number == 5 && kind == typeI32:
			entry.state = serverState(r.i32())
		case number == 6 && kind == typeBool:
			entry.tls = r.bool()
		default:
			return false
		}
		return true
	})
	return entry
}
