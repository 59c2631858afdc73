// How a record goes through its states, and when.
package slowapi

import "slices"

// life is what a record goes through. The last status stands twice when a
// price appears one step after the final state.
type life struct {
	plan  []string
	dwell [8]int64 // seconds spent in each step before the next
}

// final is the step after which nothing happens.
func (l *life) final() int { return len(l.plan) - 1 }

// progress is one record's life together with how far it has come.
type progress struct {
	life
	step    int
	start   int // the step the seed left it at
	m       *mark
	created int64
	newest  int64 // no seeded time lies after it
}

// progressOf reads how far a record has come.
func progressOf(s *sequence, i int64, l life) progress {
	p := progress{life: l, m: s.marks[i], created: s.created(i), newest: s.newest}
	if i < s.base {
		p.start = min(int((s.base-1-i)/2), l.final())
	}
	p.step = p.start
	if p.m == nil {
		return p
	}
	if p.m.plan != nil {
		p.plan = p.m.plan
	}
	p.step = min(p.start+len(p.m.when), p.final())
	return p
}

// status is the status now.
func (p *progress) status() string { return p.plan[p.step] }

// done tells whether nothing more happens to the record by itself.
func (p *progress) done() bool { return p.step >= p.final() }

// settled tells whether the step after the final state is reached too.
func (p *progress) settled() bool {
	n := len(p.plan)
	return p.done() && n >= 2 && p.plan[n-1] == p.plan[n-2]
}

// at is when a step was reached, 0 when it was not.
func (p *progress) at(step int) int64 {
	switch {
	case step < 0 || step > p.step:
		return 0
	case step > p.start:
		return p.m.when[step-p.start-1]
	case step == 0:
		return p.created
	}
	t := p.created
	for _, d := range p.dwell[:step] {
		t += d
	}
	return min(t, p.newest)
}

// reached is when a status was first reached, 0 when it was not.
func (p *progress) reached(status string) int64 {
	return p.at(slices.Index(p.plan, status))
}

// due is when the next step comes by itself.
func (p *progress) due() int64 { return p.at(p.step) + p.dwell[p.step] }

// updated is when the record last changed.
func (p *progress) updated() int64 {
	t := p.at(p.step)
	if p.m != nil {
		t = max(t, p.m.touched)
	}
	return t
}

// cut ends a life early: what was reached stays, then the given steps follow.
func (p *progress) cut(steps ...string) []string {
	return append(slices.Clone(p.plan[:p.step+1]), steps...)
}
