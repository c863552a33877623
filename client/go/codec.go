package firn

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// The types of Thrift's binary protocol.
const (
	typeStop   = 0
	typeBool   = 2
	typeByte   = 3
	typeDouble = 4
	typeI16    = 6
	typeI32    = 8
	typeI64    = 10
	typeString = 11
	typeStruct = 12
	typeMap    = 13
	typeSet    = 14
	typeList   = 15
)

const depthMax = 32

// leastBytes has the least number of bytes of a value, by its type; 0: not a type.
var leastBytes = [256]int{typeBool: 1, typeByte: 1, typeDouble: 8, typeI16: 2, typeI32: 4, typeI64: 8, typeString: 4,
	typeStruct: 1, typeMap: 6, typeSet: 5, typeList: 5}

func appendField(out []byte, kind byte, number uint16) []byte {
	return binary.BigEndian.AppendUint16(append(out, kind), number)
}

func appendString(out []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(out, uint32(len(text))), text...)
}

// reader reads values from the front of a frame. It compares every length with the bytes that are there before
// it allocates memory. After its first fault, which stays, all values are zero.
type reader struct {
	rest  []byte
	fault string
}

func (r *reader) fail(why string) {
	if r.fault == "" {
		r.fault = why
	}
	r.rest = nil
}

// take returns the next bytes of the frame, or nil.
func (r *reader) take(count int) []byte {
	if count < 0 || count > len(r.rest) {
		r.fail("a value is longer than its frame")
		return nil
	}
	taken := r.rest[:count]
	r.rest = r.rest[count:]
	return taken
}

func (r *reader) byte() byte {
	if bytes := r.take(1); bytes != nil {
		return bytes[0]
	}
	return 0
}

func (r *reader) bool() bool { return r.byte() != 0 }

func (r *reader) i32() int32 {
	if bytes := r.take(4); bytes != nil {
		return int32(binary.BigEndian.Uint32(bytes))
	}
	return 0
}

func (r *reader) i64() int64 {
	if bytes := r.take(8); bytes != nil {
		return int64(binary.BigEndian.Uint64(bytes))
	}
	return 0
}

func (r *reader) bytes() []byte { return r.take(int(r.i32())) }

func (r *reader) text() string { return strings.ToValidUTF8(string(r.bytes()), "\ufffd") }

// count reads the head of a list, whose elements take at least `least` bytes each.
func (r *reader) count(kind byte, least int) int {
	if r.byte() != kind {
		r.fail("a list has elements of another type")
		return 0
	}
	count := int(r.i32())
	if count < 0 || count > len(r.rest)/least {
		r.fail("a list has more elements than its frame can hold")
		return 0
	}
	return count
}

// fields calls `read` with the number and the type of each field of a struct. Fields that it does not read
// are skipped.
func (r *reader) fields(read func(number int16, kind byte) bool) {
	for {
		kind := r.byte()
		if kind == typeStop || r.fault != "" {
			return
		}
		number := r.take(2)
		if number == nil {
			return
		}
		if !read(int16(binary.BigEndian.Uint16(number)), kind) {
			r.skip(kind, 0)
		}
	}
}

func (r *reader) skip(kind byte, depth int) {
	if depth > depthMax {
		r.fail("its values are nested too deeply")
		return
	}
	switch kind {
	case typeString:
		r.bytes()
	case typeStruct:
		for inner := r.byte(); inner != typeStop && r.fault == ""; inner = r.byte() {
			r.take(2)
			r.skip(inner, depth+1)
		}
	case typeList, typeSet:
		r.skipAll(depth, r.byte())
	case typeMap:
		r.skipAll(depth, r.byte(), r.byte())
	default:
		if leastBytes[kind] == 0 {
			r.fail("it has a value of an unknown type")
			return
		}
		r.take(leastBytes[kind])
	}
}

// skipAll skips the elements of a container.
func (r *reader) skipAll(depth int, kinds ...byte) {
	count, least := int(r.i32()), 0
	if count == 0 {
		return // the types of an empty map may be 0
	}
	for _, kind := range kinds {
		if leastBytes[kind] == 0 {
			r.fail("it has a value of an unknown type")
			return
		}
		least += leastBytes[kind]
	}
	if count < 0 || count > len(r.rest)/least {
		r.fail("a container has more elements than its frame can hold")
		return
	}
	for ; count > 0 && r.fault == ""; count-- {
		for _, kind := range kinds {
			r.skip(kind, depth+1)
		}
	}
}

// method is a method of firn.thrift, and how its result is read.
type method struct {
	name string
	kind byte // the Thrift type of the result
	read func(*reader, *answer)
}

var (
	methodID      = &method{"getId", typeI64, func(r *reader, a *answer) { a.ids = []int64{r.i64()} }}
	methodIDs     = &method{"getIds", typeList, func(r *reader, a *answer) { a.ids = r.ids() }}
	methodRuns    = &method{"getRuns", typeList, func(r *reader, a *answer) { a.runs = r.runs() }}
	methodText    = &method{"getText", typeString, func(r *reader, a *answer) { a.text = r.text() }}
	methodStatus  = &method{"status", typeStruct, func(r *reader, a *answer) { a.status = r.status() }}
	methodServers = &method{"servers", typeStruct, func(r *reader, a *answer) { a.list = r.list() }}
)

// ask is a method with its arguments.
type ask struct {
	method *method
	tag    string
	count  int64    // of servers: the version of the known list
	lease  leaseAsk // of the methods about leases
}

// answer holds the result of a method.
type answer struct {
	ids    []int64 // of runs: the first and the last of each
	runs   []idRun
	text   string
	status *serverStatus
	list   *serverList
	terms  *leaseTerms
	late   bool // to an earlier attempt of the call
}

func askID(tag string) *ask { return &ask{method: methodID, tag: tag, count: 1} }
func askIDs(tag string, count int) *ask {
	return &ask{method: methodIDs, tag: tag, count: int64(count)}
}
func askRuns(tag string, count int) *ask {
	return &ask{method: methodRuns, tag: tag, count: int64(count)}
}
func askText(tag string) *ask     { return &ask{method: methodText, tag: tag, count: 1} }
func askStatus() *ask             { return &ask{method: methodStatus} }
func askServers(known int64) *ask { return &ask{method: methodServers, count: known} }

// faultOf returns a sentence if this cannot be an answer to the request.
func (a *ask) faultOf(got *answer) (fault string) {
	switch a.method {
	case methodLease, methodRenewLease:
		return got.terms.faultOfTexts()
	case methodIDs:
		return faultOfIDs(got.ids, int(a.count))
	case methodRuns:
		got.ids, fault = readRuns(got.runs, a.count)
	case methodText:
		if got.text == "" {
			return "its text is empty"
		}
		if printable(got.text) != got.text {
			return "its text has a control character"
		}
	}
	return fault
}

func faultOfIDs(ids []int64, count int) string {
	if len(ids) != count {
		return fmt.Sprintf("it gave %d ids, not %d", len(ids), count)
	}
	for i := 1; i < len(ids); i++ {
		if ids[i] <= ids[i-1] { // only ids of an obfuscated tag do not ascend
			return faultOfUnordered(ids)
		}
	}
	return ""
}

func faultOfUnordered(ids []int64) string {
	seen := make(map[int64]struct{}, len(ids))
	for _, id := range ids {
		seen[id] = struct{}{}
	}
	if len(seen) < len(ids) {
		return "its answer contains an id twice"
	}
	return ""
}

// readRuns returns the first and last id of each run, and a sentence if they are not `count` ids in
// ascending order.
func readRuns(runs []idRun, count int64) (ends []int64, fault string) {
	got, last := int64(0), int64(math.MinInt64)
	for _, run := range runs {
		if run.count < 1 || run.stride < 1 || (len(ends) > 0 && run.first <= last) {
			return ends, "a run is empty, or does not ascend"
		}
		steps := int64(run.count) - 1
		if room := uint64(math.MaxInt64) - uint64(run.first); steps > 0 && uint64(run.stride) > room/uint64(steps) {
			return ends, "a run exceeds the largest 64-bit id"
		}
		last = run.first + steps*run.stride
		got += int64(run.count)
		ends = append(ends, run.first, last)
	}
	if got != count {
		fault = fmt.Sprintf("its runs hold %d ids, not %d", got, count)
	}
	return ends, fault
}
