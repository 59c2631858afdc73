// Progress of long work: a bar on a terminal, and lines elsewhere.

package terminal

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	barDelay     = time.Second            // how long work must take before a bar appears
	barInterval  = 200 * time.Millisecond // how often the bar is drawn
	lineInterval = 10 * time.Second       // how often a line is printed if the output is not a terminal
	barCells     = 20
	maxHours     = 1000 // remaining times above this number of hours are not shown
)

// State says how much of some work is done.
type State struct {
	Done, Total int64     // the amount of work that is done, and all work; Total is 0 if it is not known
	Unit        string    // the plural of what is counted, such as "records"
	Ends        time.Time // when the work will end, if that is known; otherwise it is estimated from the rate
	Note        string    // what is being done, such as "walk 1 of 2"
}

// Progress shows the state of long work until End. It is safe for concurrent use. A nil Progress shows nothing.
type Progress struct {
	out   io.Writer // the output; nil if no progress is shown
	name  string
	isBar bool
	done  chan struct{}
	ended chan struct{}

	mu    sync.Mutex
	began time.Time
	since time.Time // the time since which the rate is computed
	first int64     // the amount of work that was done at the time since
	state State
	known bool // whether Set has been called
	drawn int  // the width of the bar that is on the terminal, in columns
}

// NewProgress starts to show progress on out, which is standard error. It shows a bar if out is a terminal, otherwise
// a line every 10 seconds. If quiet is true, it shows nothing. The caller must call End.
func NewProgress(out io.Writer, name string, quiet bool) *Progress {
	now := time.Now()
	p := &Progress{out: out, name: name, isBar: IsTerminal(out), began: now, since: now, done: make(chan struct{}), ended: make(chan struct{})}
	if quiet {
		p.out = nil
		close(p.ended)
		return p
	}
	go p.run()
	return p
}

// run draws the progress again and again until End is called.
func (p *Progress) run() {
	defer close(p.ended)
	interval := lineInterval
	if p.isBar {
		interval = barInterval
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return
		case now := <-tick.C:
			p.draw(now)
		}
	}
}

// Set replaces the state. Work that is done at the first call does not count for the rate. If less is done than
// before, the work has started again, as in the second pass of a sync.
func (p *Progress) Set(s State) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.known || s.Done < p.state.Done {
		p.first, p.known, p.since = s.Done, true, time.Now()
	}
	p.state = s
}

// Add increases the amount of work that is done.
func (p *Progress) Add(n int64, unit string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = true
	p.state.Done, p.state.Unit = p.state.Done+n, unit
}

// Print prints a line above the bar. It also prints the line if no progress is shown.
func (p *Progress) Print(out io.Writer, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintln(out, line)
}

// End removes the bar. Nothing is drawn after it returns. It may be called several times.
func (p *Progress) End() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.clear()
	p.out = nil
	select {
	case <-p.done:
	default:
		close(p.done)
	}
	p.mu.Unlock()
	<-p.ended
}

// draw shows the state.
func (p *Progress) draw(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.describe(now)
	switch {
	case p.out == nil || p.isBar && now.Sub(p.began) < barDelay:
	case p.isBar:
		width := cmp.Or(Width(p.out), DefaultWidth)
		line := Shorten(p.name+" "+p.state.bar()+text, width-1)
		fmt.Fprintf(p.out, "\r%s%s", line, strings.Repeat(" ", max(p.drawn-Columns(line), 0)))
		p.drawn = Columns(line)
	default:
		fmt.Fprintf(p.out, "%s: %s\n", p.name, text)
	}
}

// clear removes the bar from the terminal.
func (p *Progress) clear() {
	if p.out != nil && p.drawn > 0 {
		fmt.Fprintf(p.out, "\r%*s\r", p.drawn, "")
		p.drawn = 0
	}
}

// bar returns the text of the bar. It returns "" if the total is not known.
func (s *State) bar() string {
	if s.Total <= 0 {
		return ""
	}
	full := int(min(max(s.Done, 0), s.Total) * barCells / s.Total)
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barCells-full) + "] "
}

// describe returns the state in words: the amounts, the percentage, the rate, the remaining time and the note.
func (p *Progress) describe(now time.Time) string {
	s := &p.state
	var parts []string
	switch {
	case s.Total > 0:
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%d of %d %s", s.Done, s.Total, s.Unit)), fmt.Sprintf("%d %%", s.Done*100/s.Total))
	case s.Done > 0:
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%d %s", s.Done, s.Unit)))
	}
	rate := float64(s.Done-p.first) / max(now.Sub(p.since).Seconds(), 0.001)
	switch {
	case rate >= 10:
		parts = append(parts, fmt.Sprintf("%.0f/s", rate))
	case rate > 0:
		parts = append(parts, fmt.Sprintf("%.1f/s", rate))
	}
	left := s.Ends.Sub(now)
	if seconds := float64(s.Total-s.Done) / rate; s.Ends.IsZero() && rate > 0 && seconds < maxHours*3600 {
		left = time.Duration(seconds * float64(time.Second))
	}
	switch {
	case left > 0:
		parts = append(parts, left.Round(time.Second).String()+" left")
	case s.Total == 0:
		parts = append(parts, now.Sub(p.began).Round(time.Second).String()+" so far")
	}
	if s.Note != "" {
		parts = append(parts, s.Note)
	}
	return strings.Join(parts, ", ")
}
