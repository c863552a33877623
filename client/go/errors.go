package firn

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	wire "firn.io/go/firn/internal/wire"
)

// Reason is why a server said no; the numbers are those of firn.thrift. 0: nobody said so.
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

// String is the reason's name in the contract, such as UNKNOWN_TAG.
func (r Reason) String() string {
	if r == 0 {
		return ""
	}
	return wire.Reason(r).String()
}

// End is what became of asking one server.
type End string

// The ends that an attempt can have.
const (
	Unreachable    End = "unreachable"     // refused, no route, reset while connecting
	ConnectTimeout End = "connect timeout" // nobody took the connection in time
	ConnClosed     End = "closed"          // the connection ended before the whole answer
	Timeout        End = "timeout"         // no answer, or not all of it, in time
	Broken         End = "broken"          // what came is not an answer to what was asked
	WrongService   End = "wrong service"   // it is not an IdService of this cluster
	WasRefused     End = "refused"         // a typed "no"
	NoRoom         End = "no room"         // all of this client's connections were in use, or no descriptor left
)

// Attempt is one server that a call asked.
type Attempt struct {
	Server string
	End    End
	Reason Reason
	Took   time.Duration
	Detail string
}

// String is one sentence about the attempt.
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

// Kind says what the caller of a failed call should think of it.
type Kind string

const (
	// Refused: a server said no, and no other one would say otherwise.
	Refused Kind = "refused"
	// Unavailable: nobody could answer now.
	Unavailable Kind = "unavailable"
	// Closed: the client was closed.
	Closed Kind = "closed"
	// Invalid: options that cannot be used.
	Invalid Kind = "invalid"
)

// Error is a call that failed. It lists every attempt (of many, the last 32): the server, what happened,
// and after how long. Reason is that of the last refusal, and RetryAfter its advice when to retry.
type Error struct {
	Kind       Kind
	Sentence   string
	Reason     Reason
	RetryAfter time.Duration
	Attempts   []Attempt
	cause      error
}

// Error is the sentence and all attempts.
func (e *Error) Error() string {
	parts := []string{e.Sentence}
	for _, attempt := range e.Attempts {
		parts = append(parts, attempt.String())
	}
	return strings.Join(parts, "; ")
}

// Unwrap is context.Canceled or context.DeadlineExceeded, where the context or the deadline ended the call.
func (e *Error) Unwrap() error { return e.cause }

// failure is what asking one server came to, inside the client.
type failure struct {
	end            End
	detail         string
	reason         Reason
	retryAfter     time.Duration
	anotherMayHelp bool
	paused         bool // nothing was tried: a connection to it has just failed
	lacksMethod    bool // an older server, which is as good as before for what it has
	stale          bool // a connection that had been idle ended before a byte of the answer
}

// spoke returns whether the server answered in the protocol: the connection is as good as before.
func (f *failure) spoke() bool { return f.end == WasRefused || f.lacksMethod }

func (f *failure) unsent() bool {
	return f.end == Unreachable || f.end == ConnectTimeout || f.end == NoRoom
}

// failed is the only place where a failure is made, so no control character that a server sent reaches an
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
