package firn

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Reason is the reason of a refusal; the numbers are those of firn.thrift. 0: no refusal.
type Reason int

// The reasons of the contract.
const (
	BadRequest Reason = iota + 1
	UnknownTag
	NotReady
	Clock
	Overloaded
	Exhausted
	Draining
	Rejected
	StoreDown
	Internal
)

type retry int

const (
	never     retry = iota // every server would refuse so
	ifSaid                 // if the server reports that another one may help
	elsewhere              // the call fails over
)

// refusalRules says what each reason of a refusal means; "Refusals" in client/call/FAILOVER.md has the same columns.
var refusalRules = [...]struct {
	name     string
	retry    retry
	isAnswer bool // the time that it took counts as the server's latency
}{
	BadRequest: {"BAD_REQUEST", never, true},
	UnknownTag: {"UNKNOWN_TAG", never, true},
	NotReady:   {"NOT_READY", elsewhere, false},
	Clock:      {"CLOCK", elsewhere, false},
	Overloaded: {"OVERLOADED", elsewhere, false},
	Exhausted:  {"EXHAUSTED", ifSaid, true},
	Draining:   {"DRAINING", elsewhere, false},
	Rejected:   {"REJECTED", never, true},
	StoreDown:  {"STORE_DOWN", elsewhere, false},
	Internal:   {"INTERNAL", ifSaid, false},
}

// String returns the reason's name in the contract, such as UNKNOWN_TAG.
func (r Reason) String() string {
	if r < 0 || r > Internal {
		return fmt.Sprintf("Reason(%d)", int(r))
	}
	return refusalRules[r].name
}

// End is the outcome of one attempt at a server.
type End string

// The ends that an attempt can have.
const (
	Unreachable    End = "unreachable"     // refused, no route, reset while connecting
	ConnectTimeout End = "connect timeout" // the connection was not accepted in time
	ConnClosed     End = "closed"          // the connection ended before the complete answer
	Timeout        End = "timeout"         // no complete answer in time
	Broken         End = "broken"          // the received bytes are not an answer to the request
	WrongService   End = "wrong service"   // the server is not an IdService of this cluster
	WasRefused     End = "refused"         // the server refused with a reason
	NoRoom         End = "no room"         // all of this client's connections were in use, or no descriptor was left
)

// Attempt is an attempt of a call at one server.
type Attempt struct {
	Server string
	End    End
	Reason Reason
	Took   time.Duration
	Detail string
}

// String returns a sentence about the attempt.
func (a Attempt) String() string {
	text := fmt.Sprintf("%s %s", a.Server, a.End)
	if a.Reason != 0 {
		text += fmt.Sprintf(" (%s)", a.Reason)
	}
	text += fmt.Sprintf(" after %.1f ms", float64(a.Took.Microseconds())/1000)
	if a.Detail != "" {
		text += ": " + a.Detail
	}
	return text
}

// Kind classifies the failure of a call.
type Kind string

const (
	// Refused: a server refused for a reason that other servers would repeat.
	Refused Kind = "refused"
	// Unavailable: no server could answer now.
	Unavailable Kind = "unavailable"
	// Closed: the client was closed.
	Closed Kind = "closed"
	// Invalid: the options are invalid.
	Invalid Kind = "invalid"
	// NoLease: a LocalGenerator has no lease of a machine id.
	NoLease Kind = "no lease"
)

// Error is a call that failed. It lists every attempt (of many, the last 32): the server, what happened,
// and after how long. Reason is that of the last refusal, and RetryAfter its advice when to retry.
type Error struct {
	Kind       Kind
	Sentence   string
	Reason     Reason
	RetryAfter time.Duration
	Attempts   []Attempt
	Since      time.Time // of NoLease: from when on there is none
	cause      error
}

// Error returns the message and all attempts.
func (e *Error) Error() string {
	parts := []string{e.Sentence}
	for _, attempt := range e.Attempts {
		parts = append(parts, attempt.String())
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns context.Canceled or context.DeadlineExceeded, if the context or the deadline ended the call.
func (e *Error) Unwrap() error { return e.cause }

// failure is the client's internal outcome of a failed attempt.
type failure struct {
	end            End
	detail         string
	reason         Reason
	retryAfter     time.Duration
	anotherMayHelp bool
	paused         bool // nothing was tried, because a connection has just failed
	lacksMethod    bool // an older server, healthy for the methods that it has
	mute           bool // the connection ended before the server's status
	counted        bool // against the server, or it says nothing about the server
	stale          bool // an idle connection ended before the first byte of the answer

	leaseFault  leaseFault // why a server does not grant, extend or end a lease; 0: this is another failure
	leaseServer string     // of anotherServers
}

// String returns the failure as part of a sentence.
func (f *failure) String() string {
	text := string(f.end)
	if f.reason != 0 {
		text += fmt.Sprintf(" (%s)", f.reason)
	}
	if f.detail != "" {
		text += ": " + f.detail
	}
	return text
}

// spoke returns whether the server sent a valid answer, so that the connection can be used again.
func (f *failure) spoke() bool { return f.end == WasRefused || f.lacksMethod }

func (f *failure) unsent() bool {
	return f.end == Unreachable || f.end == ConnectTimeout || f.end == NoRoom
}

// unfinished is the failure of an attempt that the end of its call interrupts, which says nothing about the server.
func unfinished(end End) *failure { return &failure{end: end, counted: true} }

// failed creates every failure, and replaces control characters of a server's text, so that none reaches an
// error, an event or a terminal.
func failed(end End, detail string) *failure { return &failure{end: end, detail: printable(detail)} }

// printable replaces control characters and invalid UTF-8.
func printable(text string) string {
	return strings.Map(func(one rune) rune {
		if unicode.IsControl(one) {
			return '?'
		}
		return one
	}, strings.ToValidUTF8(text, "?"))
}
