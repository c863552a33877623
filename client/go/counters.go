package firn

import "sync/atomic"

// Counters is what a client has done since it was created. Each number only grows.
type Counters struct {
	Calls          int64 `json:"calls"`            // calls to servers; ids from memory are not among them
	Failed         int64 `json:"calls_failed"`     // calls that failed without a refusal
	Refused        int64 `json:"calls_refused"`    // calls that a server refused
	Attempts       int64 `json:"attempts"`         // attempts at servers
	Retries        int64 `json:"retries"`          // requests that used the retry budget
	RetriesDenied  int64 `json:"retries_denied"`   // retries that the exhausted retry budget prevented
	Timeouts       int64 `json:"attempt_timeouts"` // attempts without an answer in time
	Broken         int64 `json:"invalid_answers"`  // invalid answers
	Connects       int64 `json:"connects"`         // connections that were begun
	ConnectsFailed int64 `json:"connects_failed"`  // connections that failed before the server's status arrived
	Lists          int64 `json:"lists"`            // server lists that were accepted
	LocalIDs       int64 `json:"local_ids"`        // ids that goroutines took from memory, in pieces
	LocalIDsMissed int64 `json:"local_ids_missed"` // how often no id was in memory although the tag is prefetched
}

// counts are the counters while they change.
type counts struct {
	calls, failed, refused, attempts, retries, retriesDenied, timeouts, broken atomic.Int64
	connects, connectsFailed, lists, local, localMissed                        atomic.Int64
}

// Counters returns what this client has done.
func (c *Client) Counters() Counters {
	now := &c.engine.fleet.counts
	return Counters{Calls: now.calls.Load(), Failed: now.failed.Load(), Refused: now.refused.Load(),
		Attempts: now.attempts.Load(), Retries: now.retries.Load(), RetriesDenied: now.retriesDenied.Load(),
		Timeouts: now.timeouts.Load(), Broken: now.broken.Load(), Connects: now.connects.Load(),
		ConnectsFailed: now.connectsFailed.Load(), Lists: now.lists.Load(), LocalIDs: now.local.Load(),
		LocalIDsMissed: now.localMissed.Load()}
}

// attempted counts an attempt by its end.
func (c *counts) attempted(problem *failure) {
	c.attempts.Add(1)
	if problem == nil {
		return
	}
	switch problem.end {
	case Timeout, ConnectTimeout:
		c.timeouts.Add(1)
	case Broken, WrongService:
		c.broken.Add(1)
	}
}
