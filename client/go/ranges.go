package firn

import (
	"errors"
	"sync"
	"time"

	wire "firn.io/go/firn/internal/wire"
)

const (
	firstFetch = 128
	fetchMost  = 10_000_000
	tooManyFor = time.Minute
)

// buffer holds the runs of one fetch; ids are taken from its front.
type buffer struct {
	runs       []*wire.IdRun
	size, left int
	askedAt    time.Time
}

func (b *buffer) take() int64 {
	run := b.runs[0]
	id := run.First
	if run.First += run.Stride; run.Count == 1 {
		b.runs = b.runs[1:]
	}
	run.Count--
	b.left--
	return id
}

// supply is the prefetched ids of one tag, in two buffers. The next buffer is fetched when half of the
// current one is used, or at once if the other half would not last until the answer. If a fetch is used
// up too soon, the next one is larger; if it lasts too long, smaller. After a failure the next fetch
// waits 10 ms to 1 s, or 1 s to 30 s if the server's reason says that a retry will
// not help.
type supply struct {
	tag    LocalTag
	engine *engine

	mutex              sync.Mutex
	fetched            chan struct{} // closed when the fetch in progress has ended; nil: no fetch
	inUse, next        buffer
	usedSince          time.Time
	lastUse, lastFetch time.Duration
	size, most         int
	mostUntil          time.Time
	starved            bool
	notBefore          time.Time
	soon, late         time.Duration
}

func newSupply(tag LocalTag, e *engine) *supply {
	if tag.FetchMax <= 0 {
		tag.FetchMax = fetchMost
	}
	if tag.Lasts <= 0 {
		tag.Lasts = time.Second
	}
	return &supply{tag: tag, engine: e, size: firstFetch, lastUse: time.Hour}
}

// take returns an id from memory, if there is one, after waiting for a fetch in progress.
func (s *supply) take(patience time.Duration) (id int64, found bool) {
	until := time.Time{}
	for {
		now := time.Now()
		s.mutex.Lock()
		if found = s.prepare(now); found {
			id = s.inUse.take()
		}
		s.fetchIfLow(now)
		fetched := s.fetched
		s.mutex.Unlock()
		if until.IsZero() {
			until = now.Add(patience)
		}
		if found || fetched == nil || !now.Before(until) {
			return id, found
		}
		s.engine.sleep(s.engine.ctx, until.Sub(now), fetched)
	}
}

// prepare returns whether the current buffer has ids that may be taken. Under the mutex, as all below.
func (s *supply) prepare(now time.Time) bool {
	s.dropAged(&s.inUse, now)
	s.dropAged(&s.next, now)
	if s.inUse.left == 0 && s.next.left > 0 {
		if !s.usedSince.IsZero() {
			s.lastUse = now.Sub(s.usedSince)
			s.resize()
		}
		s.usedSince, s.starved = now, false
		s.inUse, s.next = s.next, buffer{}
	}
	s.starved = s.starved || s.inUse.left == 0
	return s.inUse.left > 0
}

func (s *supply) dropAged(b *buffer, now time.Time) {
	if b.left > 0 && s.tag.MaxAge > 0 && now.Sub(b.askedAt) > s.tag.MaxAge {
		*b = buffer{}
	}
}

func (s *supply) resize() {
	switch {
	case s.lastUse > 2*s.tag.Lasts:
		s.size /= 2
	case s.lastUse < s.tag.Lasts/16:
		s.size *= 8
	case s.starved || s.lastUse < s.tag.Lasts/2:
		s.size *= 2
	}
	s.size = clamp(s.size, 1, s.tag.FetchMax)
}

func (s *supply) fetchIfLow(now time.Time) {
	enough := s.inUse.size / 2
	if s.lastUse/2 < s.lastFetch {
		enough = s.inUse.size
	}
	if s.next.left > 0 || s.inUse.left > enough || s.fetched != nil || now.Before(s.notBefore) {
		return
	}
	count := s.size
	if now.Before(s.mostUntil) && count > s.most {
		count = s.most
	}
	s.fetched = make(chan struct{})
	go s.fetch(count, now)
}

func (s *supply) fetch(count int, askedAt time.Time) {
	got, fault := s.engine.call(s.engine.ctx, askRuns(s.tag.Tag, count),
		askedAt.Add(s.engine.options.Deadline))
	s.mutex.Lock()
	defer s.mutex.Unlock()
	close(s.fetched)
	s.fetched = nil
	now := time.Now()
	if fault != nil {
		s.failed(fault, count, now)
		return
	}
	s.lastFetch, s.soon, s.late = now.Sub(askedAt), 0, 0
	s.next = buffer{runs: got.runs, size: count, left: count, askedAt: askedAt}
}

func (s *supply) failed(fault error, count int, now time.Time) {
	var told *Error
	refused := errors.As(fault, &told) && told.Kind == Refused
	if refused && told.Reason == UnknownTag { // it was deleted: no more ids of it
		s.inUse, s.next = buffer{}, buffer{}
	}
	tooMany := refused && told.Reason == BadRequest && count > 1
	if tooMany {
		s.most, s.mostUntil = count/2, now.Add(tooManyFor)
	}
	if tooMany || !refused {
		s.soon = clamp(2*s.soon, 10*time.Millisecond, time.Second)
		s.notBefore = now.Add(s.soon)
	} else {
		s.late = clamp(2*s.late, time.Second, 30*time.Second)
		s.notBefore = now.Add(s.late)
	}
}
