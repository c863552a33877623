package firn

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	defaultEpochMs = 1_704_067_200_000
	slackMs        = 24 * 3_600_000
)

var namedLayouts = map[string]string{
	"firn":    "time:41 machine:10 sequence:12",
	"twitter": "time:41 machine:10 sequence:12 epoch:1288834974657",
	"vesta-max-peak": "version:1 type:1=0 method:2 time:30s sequence:20 machine:10 " +
		"epoch:1420041600000",
	"vesta-min-granularity": "version:1 type:1=1 method:2 time:40 sequence:10 machine:10 " +
		"epoch:1420041600000",
	"js-safe": "time:41 machine:6 sequence:6",
}

var timeField = regexp.MustCompile(`^(\d+)(?:@(\d+))?(ms|s)?$`)

// layout is the position of the time in an id, and the bits that never change.
type layout struct {
	tickMs, epochMs      int64
	fixedMask, fixedBits uint64
	timeShift            int
	timeMask             uint64
	signed               bool
}

func readLayout(text string) (*layout, error) {
	if named, found := namedLayouts[text]; found {
		text = named
	}
	read, shift := &layout{tickMs: 1, epochMs: defaultEpochMs}, 0
	tokens := strings.Fields(text)
	for i := len(tokens) - 1; i >= 0; i-- {
		name, value, _ := strings.Cut(tokens[i], ":")
		var width int
		var fault error
		if name == "epoch" {
			fault = read.readEpoch(value)
		} else {
			width, fault = read.readField(name, value, shift)
		}
		if fault != nil {
			return nil, fault
		}
		shift += width
	}
	if read.timeMask == 0 || shift > 64 {
		return nil, fmt.Errorf("'%s' is not a layout", text)
	}
	if shift < 64 {
		read.fixedMask |= ^uint64(0) << shift
	}
	return read, nil
}

// readField adds the field that begins at bit `shift`, and returns its width.
func (l *layout) readField(name, value string, shift int) (int, error) {
	if name == "time" {
		match := timeField.FindStringSubmatch(value)
		if match == nil {
			return 0, fmt.Errorf("'%s' is not a time field", value)
		}
		width, _ := strconv.Atoi(match[1])
		if count, fault := strconv.ParseInt(match[2], 10, 64); fault == nil {
			l.tickMs = count
		}
		if match[3] == "s" {
			l.tickMs *= 1000
		}
		l.timeShift, l.timeMask = shift, 1<<width-1
		return width, nil
	}
	digits, constant, _ := strings.Cut(value, "=")
	width, fault := strconv.Atoi(digits)
	if name == "zero" || name == "type" {
		bits, _ := strconv.ParseUint(constant, 10, 64)
		l.fixedMask |= (1<<width - 1) << shift
		l.fixedBits |= bits << shift
	}
	l.signed = l.signed || (name == "version" && shift+width == 64)
	return width, fault
}

func (l *layout) readEpoch(text string) error {
	if ms, fault := strconv.ParseInt(text, 10, 64); fault == nil {
		l.epochMs = ms
		return nil
	}
	form := time.RFC3339
	if len(text) == len("2006-01-02") {
		form = "2006-01-02"
	}
	at, fault := time.Parse(form, text)
	l.epochMs = at.UnixMilli()
	return fault
}

// idCheck knows the ids that one server can have issued, by its status at the start of a connection.
type idCheck struct {
	layout *layout         // nil: a newer layout; checks only rules of all layouts
	timed  map[string]bool // tags whose ids contain a time and are not obfuscated
	wallMs int64           // the server's clock at saidAt
	saidAt time.Time
}

// faultOf returns a sentence if the server cannot have issued these ids.
func (c *idCheck) faultOf(tag string, ids []int64) string {
	for _, id := range ids {
		if id == 0 || (id < 0 && (c.layout == nil || !c.layout.signed)) {
			return fmt.Sprintf("no id is %d", id)
		}
		if c.layout == nil || !c.timed[tag] {
			continue
		}
		if uint64(id)&c.layout.fixedMask != c.layout.fixedBits {
			return fmt.Sprintf("%d cannot be an id of this cluster: a fixed bit of the layout differs", id)
		}
		ticks := int64(uint64(id) >> c.layout.timeShift & c.layout.timeMask)
		ahead := c.layout.epochMs + ticks*c.layout.tickMs - c.wallMs - time.Since(c.saidAt).Milliseconds()
		if ahead > slackMs || ahead < -slackMs {
			return fmt.Sprintf("%d cannot be an id of this cluster: its time is more than a day from the clock", id)
		}
	}
	return ""
}
